import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { stoppable } from './stoppable.ts'

const PATH = '/stop'
const toRequest = (path: string): Request => new Request(`http://witness.test${path}`)

beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] }))
afterEach(() => void vi.useRealTimers())

/** A worker whose requests respond when `respond` is called, and the responses in their order. */
const start = (endWaits: (respond: () => void) => void) => {
  const responses: string[] = []
  const { promise, resolve } = Promise.withResolvers<Response>()
  const respond = () => resolve(new Response('ended'))
  const worker = stoppable({ fetch: () => promise }, PATH, () => endWaits(respond))
  const send = async (path: string) => {
    const response = await worker.fetch(toRequest(path))
    responses.push(`${path} ${response.status}`)
  }
  return { responses, respond, send }
}

test('a stop ends the waits, and gets its response after them', async () => {
  const { responses, send } = start(respond => respond())
  void send('/wait')
  void send(PATH)
  await vi.advanceTimersByTimeAsync(20)
  expect(responses).toEqual(['/wait 200', '/stop 204'])
})

test('a stop waits for a request in flight, but not for longer than a second', async () => {
  const { responses, respond, send } = start(() => {})
  void send('/slow')
  void send(PATH)
  await vi.advanceTimersByTimeAsync(900)
  expect(responses).toEqual([])
  respond()
  await vi.advanceTimersByTimeAsync(20)
  expect(responses).toEqual(['/slow 200', '/stop 204'])

  const stuck = start(() => {})
  void stuck.send('/stuck')
  void stuck.send(PATH)
  await vi.advanceTimersByTimeAsync(1_100)
  expect(stuck.responses).toEqual(['/stop 204'])
})

test('a stop waits for as long as requests in flight keep ending', async () => {
  const ends: (() => void)[] = []
  const fetch = () => new Promise<Response>(resolve => ends.push(() => resolve(new Response('ended'))))
  const worker = stoppable({ fetch }, PATH, () => {})
  for (let sent = 0; sent < 3; sent += 1) void worker.fetch(toRequest('/wait'))
  let isStopped = false
  void Promise.resolve(worker.fetch(toRequest(PATH))).then(() => {
    isStopped = true
  })
  for (const end of ends) {
    await vi.advanceTimersByTimeAsync(900)
    expect(isStopped).toBe(false)
    end()
  }
  await vi.advanceTimersByTimeAsync(20)
  expect(isStopped).toBe(true)
})

import { setTimeout as sleep } from 'node:timers/promises'
import { findWorkerd, hasProc, readRssMib, WITHOUT_PROC } from '@pool/test-kit/processes.ts'
import { type Service, startLocalWitness } from '@pool/test-kit/services.ts'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Client, createClient, parseLease, writeLease } from './support/client.ts'
import { median, printTable, toFixed1 } from './support/print-table.ts'
import { closeWaiters, openWaiter, openWaiters, untilWaiting, type Waiter } from './support/waiter.ts'
import { temporaryDirectory } from './support/witness.ts'

/** The witness's limit per slot. */
const MAX_WAITERS = 2_000
const ROUNDS = 1
const WAIT_SECONDS = 60
/** Not a performance requirement: it only detects a forgotten waiter, which gets its response at the end of its wait. */
const MAX_DELAY_MS = 50_000

const directory = temporaryDirectory()
let witness: Service
let client: Client

beforeAll(async () => {
  witness = await startLocalWitness(directory.path, { MAX_WAIT_SECONDS: '60' })
  client = createClient(witness.port)
})

afterAll(async () => {
  client?.[Symbol.dispose]()
  await witness?.process.stop()
  directory[Symbol.dispose]()
})

const readGeneration = async (slot: string): Promise<number> => {
  const response = await client.send('GET', `/lease/${encodeURIComponent(slot)}`)
  return response.status === 404 ? 0 : parseLease(response).generation
}

const acquire = async (slot: string, ttlSeconds = 3_600) => {
  const body = { op: 'acquire', ttlSeconds } as const
  const response = await writeLease(client, 'holder', slot, await readGeneration(slot), body)
  expect(response.status, response.text).toBe(200)
  return parseLease(response)
}

/** Releases the slot while `waiters` wait. Each must get exactly one response. */
const runReleaseRound = async (slot: string, waiters: readonly Waiter[]) => {
  const { generation } = await acquire(slot)
  const received = Promise.all(waiters.map(waiter => waiter.wait(generation, WAIT_SECONDS)))
  await untilWaiting(client, slot, waiters.length)
  const sentAt = performance.now()
  const released = await writeLease(client, 'holder', slot, generation, 'release')
  const acknowledgedAt = performance.now()
  expect(released.status).toBe(204)
  const responses = await received
  for (const { response, receivedAt } of responses) {
    expect(response.status).toBe(200)
    expect(JSON.parse(response.text)).toEqual({ holder: '', acquiredAt: '', expiresAt: '', generation: generation + 1 })
    expect(response.headers.get('etag')).toBe(`"${generation + 1}"`)
    // No waiter was notified before the release was sent.
    expect(receivedAt).toBeGreaterThan(sentAt)
    expect(receivedAt - sentAt).toBeLessThan(MAX_DELAY_MS)
  }
  await sleep(20)
  for (const { connection } of waiters) expect(connection.unread).toBe('')
  const times = responses.map(({ receivedAt }) => receivedAt)
  const figures = [Math.min(...times), median(times), Math.max(...times)]
  return { afterRequest: figures.map(at => at - sentAt), afterResponse: figures.map(at => at - acknowledgedAt) }
}

/** Whether the slot accepts one more waiter, tried with a wait of one second. */
const acceptsOneMore = async (slot: string, generation: number): Promise<boolean> => {
  const waiter = await openWaiter(witness.port, slot)
  try {
    const { response } = await waiter.wait(generation, 1)
    if (response.status === 304) return true
    expect(response.status).toBe(503)
    expect(response.headers.get('retry-after')).toMatch(/^[1-5]$/)
    expect(JSON.parse(response.text).error).toBe('overloaded')
    return false
  } finally {
    closeWaiters([waiter])
  }
}

const startWaiting = (waiters: readonly Waiter[], generation: number, seconds = WAIT_SECONDS) =>
  // A waiter whose connection is closed gets no response.
  waiters.map(waiter => waiter.wait(generation, seconds).catch(() => undefined))

/** The first test, so that the first figure is the memory of an idle workerd. */
test('a full slot accepts as many waiters as have reset their connections', async () => {
  const slot = 'full'
  const { generation } = await acquire(slot)
  const pid = hasProc ? (findWorkerd(witness.process.pid) ?? 0) : 0
  const memory: [number, number][] = [[0, readRssMib(pid)]]
  const waiters: Waiter[] = []
  const fill = async (count: number) => {
    const more = await openWaiters(witness.port, slot, count - waiters.length)
    waiters.push(...more)
    startWaiting(more, generation)
    await untilWaiting(client, slot, count)
  }
  try {
    for (const count of [100, 500, MAX_WAITERS]) {
      await fill(count)
      memory.push([count, readRssMib(pid)])
    }
    expect(await acceptsOneMore(slot, generation)).toBe(false)

    closeWaiters(waiters.splice(0, 1_050))
    await untilWaiting(client, slot, waiters.length)
    await fill(MAX_WAITERS)
    expect(waiters.every(({ connection }) => connection.unread === '' && connection.isOpen)).toBe(true)
    expect(await acceptsOneMore(slot, generation)).toBe(false)
  } finally {
    closeWaiters(waiters)
  }
  await untilWaiting(client, slot, 0)
  expect(await acceptsOneMore(slot, generation)).toBe(true)

  if (!hasProc) process.stdout.write(`memory of waiters: ${WITHOUT_PROC}\n`)
  const idle = memory[0]?.[1] ?? 0
  printTable('resident memory of workerd', [
    ['waiters', 'MiB', 'KiB per waiter'],
    ...memory.map(([count, rss]) => [
      count,
      toFixed1(rss),
      count === 0 ? '' : toFixed1(((rss - idle) * 1_024) / count),
    ]),
  ])
})

test('a release notifies every waiter', async () => {
  const rows: string[][] = []
  for (const count of [1, 100, 500]) {
    const slot = `released/${count}`
    const waiters = await openWaiters(witness.port, slot, count)
    try {
      const rounds: Awaited<ReturnType<typeof runReleaseRound>>[] = []
      for (let n = 0; n < ROUNDS; n += 1) rounds.push(await runReleaseRound(slot, waiters))
      const column = (of: 'afterRequest' | 'afterResponse') =>
        [0, 1, 2].map(index => toFixed1(median(rounds.map(round => round[of][index] ?? Number.NaN))))
      rows.push([String(count), ...column('afterRequest'), ...column('afterResponse')])
    } finally {
      closeWaiters(waiters)
    }
  }
  printTable(`from a release to the responses of its waiters, ms, medians of ${ROUNDS} rounds`, [
    ['', 'after', 'the', 'request', 'after', 'its', '204'],
    ['waiters', 'first', 'median', 'last', 'first', 'median', 'last'],
    ...rows,
  ])
})

// The witness does not notice a connection that only the client has closed.
test.concurrent('the waits of closed connections end when their time is up', async () => {
  const slot = 'closed'
  const { generation } = await acquire(slot)
  const waiters = await openWaiters(witness.port, slot, 50)
  startWaiting(waiters, generation, 10)
  await untilWaiting(client, slot, waiters.length)
  for (const { connection } of waiters) connection.socket.destroy()
  await untilWaiting(client, slot, 0)
})

test.concurrent('an expiry notifies every waiter, and not too early', async () => {
  const measureDelays = async (count: number) => {
    const slot = `expired/${count}`
    const waiters = await openWaiters(witness.port, slot, count)
    try {
      const { generation, expiresAt } = await acquire(slot, 2)
      const expiry = Date.parse(expiresAt)
      const delaysMs: number[] = []
      await Promise.all(
        waiters.map(async waiter => {
          const { response } = await waiter.wait(generation, WAIT_SECONDS)
          delaysMs.push(Date.now() - expiry)
          expect(response.status).toBe(200)
          expect(JSON.parse(response.text)).toMatchObject({ holder: 'holder', generation, expiresAt })
        }),
      )
      expect(Math.min(...delaysMs)).toBeGreaterThanOrEqual(0)
      expect(Math.max(...delaysMs)).toBeLessThan(MAX_DELAY_MS)
      return [count, Math.min(...delaysMs), median(delaysMs), Math.max(...delaysMs)].map(String)
    } finally {
      closeWaiters(waiters)
    }
  }
  const rows = await Promise.all([1, 100, 500].map(measureDelays))
  printTable('from an expiry to the responses of its waiters, ms', [['waiters', 'first', 'median', 'last'], ...rows])
})

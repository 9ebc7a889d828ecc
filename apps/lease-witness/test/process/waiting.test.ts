import { setTimeout as sleep } from 'node:timers/promises'
import { hasProc, rssOf, WITHOUT_PROC, workerdOf } from '@pool/test-kit/processes.ts'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Client, createClient, leaseOf } from './support/client.ts'
import { median, ms, print } from './support/figures.ts'
import { writeOf } from './support/load.ts'
import { openWaiter, openWaiters, untilWaiting, type Waiter } from './support/waiter.ts'
import { type RunningWitness, startWitness, temporaryFolder } from './support/witness.ts'

/** As many waits as one slot takes on. */
const MOST_WAITERS = 2_000
const ROUNDS = 5
/** No figure: only that nobody is left behind. */
const SANE_MS = 10_000

const folder = temporaryFolder()
let witness: RunningWitness
let client: Client

beforeAll(async () => {
  witness = await startWitness(folder.path)
  client = createClient(witness.port)
})

afterAll(async () => {
  client?.[Symbol.dispose]()
  await witness?.process.stop()
  folder[Symbol.dispose]()
})

const closeAll = (waiters: readonly Waiter[]) => {
  for (const { connection } of waiters) connection[Symbol.dispose]()
}

const generationOf = async (slot: string): Promise<number> => {
  const answer = await client.send('GET', `/lease/${encodeURIComponent(slot)}`)
  return answer.status === 404 ? 0 : leaseOf(answer).generation
}

const acquire = async (slot: string, ttlSeconds = 3_600) => {
  const answer = await writeOf(client, 'holder', slot, await generationOf(slot), { op: 'acquire', ttlSeconds })
  expect(answer.status, answer.text).toBe(200)
  return leaseOf(answer)
}

/** One release under `waiters`, who must all be told of it, once. */
const releaseRound = async (slot: string, waiters: readonly Waiter[]) => {
  const { generation } = await acquire(slot)
  const told = Promise.all(waiters.map(waiter => waiter.wait(generation, 30)))
  await untilWaiting(waiters.length)
  const sent = performance.now()
  const released = await writeOf(client, 'holder', slot, generation, 'release')
  const acknowledged = performance.now()
  expect(released.status).toBe(204)
  const answers = await told
  for (const { answer, at } of answers) {
    expect(answer.status).toBe(200)
    expect(JSON.parse(answer.text)).toEqual({ holder: '', acquiredAt: '', expiresAt: '', generation: generation + 1 })
    expect(answer.headers.get('etag')).toBe(`"${generation + 1}"`)
    // Nobody was told before it was asked for.
    expect(at).toBeGreaterThan(sent)
    expect(at - sent).toBeLessThan(SANE_MS)
  }
  await sleep(20)
  for (const { connection } of waiters) expect(connection.unread()).toBe('')
  const times = answers.map(({ at }) => at)
  const figures = [Math.min(...times), median(times), Math.max(...times)]
  return { afterSent: figures.map(at => at - sent), afterAnswer: figures.map(at => at - acknowledged) }
}

/** Whether the slot takes on one more wait, for a second. */
const takesOneMore = async (slot: string, generation: number): Promise<boolean> => {
  const one = await openWaiter(witness.port, slot)
  try {
    const { answer } = await one.wait(generation, 1)
    if (answer.status === 304) return true
    expect(answer.status).toBe(503)
    expect(answer.headers.get('retry-after')).toBe('1')
    expect(JSON.parse(answer.text).error).toBe('overloaded')
    return false
  } finally {
    closeAll([one])
  }
}

const begin = (waiters: readonly Waiter[], generation: number, seconds: number) =>
  // Those that are broken off get no answer.
  waiters.map(waiter => waiter.wait(generation, seconds).catch(() => undefined))

/** First of all, while the memory is still as at the start. */
test('waiters who go away are forgotten', async () => {
  const slot = 'left'
  const { generation } = await acquire(slot)
  const pid = hasProc ? (workerdOf(witness.process.pid) ?? 0) : 0
  const memory: [number, number][] = [[0, rssOf(pid)]]
  const staying: Waiter[] = []
  const leaving: Waiter[] = []
  try {
    for (const count of [100, 500, MOST_WAITERS - 50]) {
      const more = await openWaiters(witness.port, slot, count - staying.length)
      staying.push(...more)
      begin(more, generation, 60)
      await untilWaiting(more.length)
      memory.push([count, rssOf(pid)])
    }
    leaving.push(...(await openWaiters(witness.port, slot, 50)))
    begin(leaving, generation, 4)
    await untilWaiting(leaving.length)
    const began = performance.now()
    expect(await takesOneMore(slot, generation)).toBe(false)

    // A connection that is only closed on the waiter's side is not seen to be gone, but its wait ends with its time.
    for (const { connection } of leaving) connection.socket.destroy()
    await sleep(Math.max(0, 4_500 - (performance.now() - began)))
    expect(await takesOneMore(slot, generation)).toBe(true)

    const again = await openWaiters(witness.port, slot, 50)
    begin(again, generation, 60)
    await untilWaiting(again.length)
    expect(await takesOneMore(slot, generation)).toBe(false)
    // One that is reset is forgotten at once: as many others are taken on in its place.
    for (const { connection } of [...staying.splice(0, 1_000), ...again]) connection.socket.resetAndDestroy()
    await sleep(1_000)
    const others = await openWaiters(witness.port, slot, 1_050)
    staying.push(...others)
    begin(others, generation, 60)
    await untilWaiting(others.length)
    expect(others.every(({ connection }) => connection.unread() === '')).toBe(true)
    expect(await takesOneMore(slot, generation)).toBe(false)
  } finally {
    closeAll([...staying, ...leaving])
  }
  await sleep(1_000)
  expect(await takesOneMore(slot, generation)).toBe(true)

  if (!hasProc) process.stdout.write(`memory of waiters: ${WITHOUT_PROC}\n`)
  const idle = memory[0]?.[1] ?? 0
  print('resident memory of workerd', [
    ['waiters', 'MiB', 'KiB per waiter'],
    ...memory.map(([count, rss]) => [count, ms(rss), count === 0 ? '' : ms(((rss - idle) * 1_024) / count)]),
  ])
})

test('a release is told to everybody who waits', async () => {
  const rows: string[][] = []
  for (const count of [1, 100, 500]) {
    const slot = `released/${count}`
    const waiters = await openWaiters(witness.port, slot, count)
    try {
      const rounds: Awaited<ReturnType<typeof releaseRound>>[] = []
      for (let n = 0; n < ROUNDS; n += 1) rounds.push(await releaseRound(slot, waiters))
      const column = (of: 'afterSent' | 'afterAnswer') =>
        [0, 1, 2].map(index => ms(median(rounds.map(round => round[of][index] ?? Number.NaN))))
      rows.push([String(count), ...column('afterSent'), ...column('afterAnswer')])
    } finally {
      closeAll(waiters)
    }
  }
  print(`from a release to its answers, ms, medians of ${ROUNDS} rounds`, [
    ['', 'after it', 'was', 'sent', 'after', 'its', '204'],
    ['waiters', 'first', 'median', 'last', 'first', 'median', 'last'],
    ...rows,
  ])
})

test('an expiry is told to everybody who waits, and not too soon', async () => {
  const lateOf = async (count: number) => {
    const slot = `expired/${count}`
    const waiters = await openWaiters(witness.port, slot, count)
    try {
      const { generation, expiresAt } = await acquire(slot, 2)
      const expiry = Date.parse(expiresAt)
      const late: number[] = []
      await Promise.all(
        waiters.map(async waiter => {
          const { answer } = await waiter.wait(generation, 30)
          late.push(Date.now() - expiry)
          expect(answer.status).toBe(200)
          expect(JSON.parse(answer.text)).toMatchObject({ holder: 'holder', generation, expiresAt })
        }),
      )
      expect(Math.min(...late)).toBeGreaterThanOrEqual(0)
      expect(Math.max(...late)).toBeLessThan(SANE_MS)
      return [count, Math.min(...late), median(late), Math.max(...late)].map(String)
    } finally {
      closeAll(waiters)
    }
  }
  const rows = await Promise.all([1, 100, 500].map(lateOf))
  print('from an expiry to its answers, ms', [['waiters', 'first', 'median', 'last'], ...rows])
})

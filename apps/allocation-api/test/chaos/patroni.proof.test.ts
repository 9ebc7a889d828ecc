import { setTimeout as sleep } from 'node:timers/promises'
import { TOKEN } from '@pool/test-kit/lease-connection.ts'
import { shouldSkip } from '@pool/test-kit/optional-deps.ts'
import { missingPatroni, startPatroniPair } from '@pool/test-kit/patroni.ts'
import { until } from '@pool/test-kit/poll.ts'
import { reportProof } from '@pool/test-kit/proof-size.ts'
import { type Service, sendRequest, startApi, startWitness } from '@pool/test-kit/services.ts'
import { expect, test } from 'vitest'
import { countDoubles, findLost, startRivals, UNAVAILABLE } from '../support/rivals.ts'

const SLOTS = 4

/** Renews leases without an end, each as the only writer of its slot. */
const startHolders = (witness: Service) => {
  const wrong: string[] = []
  const outcomes = new Map<string, number>()
  let isStopping = false
  let successes = 0
  const run = async (slot: string) => {
    const send = async (method: string, tag = '', body?: unknown) => {
      const headers = { Authorization: `Bearer ${TOKEN}`, ...(tag && { 'If-Match': tag }) }
      const response = await sendRequest(`${witness.url}/lease/${slot}`, method, body, headers)
      const outcome = `${method} ${response.status}`
      outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1)
      return response
    }
    let acknowledged = 0
    let tag = '0'
    while (!isStopping) {
      const { status, body } = await send('PUT', tag, { holder: slot, ttlSeconds: 3_600 })
      if (status === 200) {
        successes += 1
        if (body.generation <= acknowledged) wrong.push(`${slot}: ${body.generation} after ${acknowledged}`)
        acknowledged = body.generation
        tag = String(acknowledged)
        continue
      }
      await sleep(10)
      const read = await send('GET')
      if (read.status !== 200) continue
      if (read.body.generation < acknowledged) wrong.push(`${slot}: read ${read.body.generation} after ${acknowledged}`)
      tag = String(read.body.generation)
    }
  }
  const ended = Promise.all(Array.from({ length: SLOTS }, (_, index) => run(`slot-${index}`)))
  return {
    wrong,
    outcomes,
    successes: () => successes,
    async stop() {
      isStopping = true
      await ended
    },
  }
}

/** The longest time without a success until `isOver`. */
const measureGap = async (successes: () => number, isOver: () => boolean): Promise<number> => {
  let [last, since, longest] = [successes(), performance.now(), 0]
  while (!isOver()) {
    await sleep(10)
    const now = performance.now()
    longest = Math.max(longest, now - since)
    if (successes() !== last) [last, since] = [successes(), now]
  }
  return longest
}

test.skipIf(shouldSkip(missingPatroni))(
  'a Patroni pair changes its primary under load, as planned, after a crash and after a freeze: nothing is lost or answered wrongly',
  async () => {
    await using cleanup = new AsyncDisposableStack()
    const pair = await startPatroniPair(cleanup)
    await pair.untilReplicated()
    const apis = [await startApi(pair.url, { PDM_RESERVATION_TTL: '24h' }), await startApi(pair.url)]
    const witness = await startWitness(pair.url)
    for (const { process: child } of [...apis, witness]) cleanup.defer(async () => void (await child.kill()))
    const rivals = startRivals(apis)
    const holders = startHolders(witness)
    const loads = [rivals, holders]

    const change = async (how: string, begin: () => Promise<() => void>) => {
      await pair.untilReplicated()
      const former = await pair.findPrimary()
      const before = loads.map(load => load.successes())
      await until('writes succeed', () => loads.every((load, index) => load.successes() > (before[index] ?? 0) + 100))
      let isOver = false
      const gaps = Promise.all(loads.map(load => measureGap(load.successes, () => isOver)))
      const startedAt = performance.now()
      const end = await begin()
      await until('the other server leads', async () => (await pair.findPrimary()) !== former, 300_000)
      const changedMs = performance.now() - startedAt
      const after = loads.map(load => load.successes())
      await until('writes succeed again', () =>
        loads.every((load, index) => load.successes() > (after[index] ?? 0) + 100),
      )
      isOver = true
      const [names, leases] = (await gaps).map(ms => (ms / 1_000).toFixed(1))
      reportProof(
        `${how}: led by the other server after ${(changedMs / 1_000).toFixed(1)} s, names not written for ${names} s, leases for ${leases} s`,
      )
      end()
    }
    for (let round = 0; round < 2; round += 1) await change('switchover', pair.switchOver)
    await change('crash', pair.crash)
    await change('freeze', pair.freeze)
    await pair.untilReplicated()
    await Promise.all(loads.map(load => load.stop()))

    const lost = await findLost(pair.url, rivals.holders)
    expect([lost, countDoubles(rivals.holders), holders.wrong]).toEqual([[], 0, []])
    expect([...rivals.outcomes.keys()].filter(outcome => !UNAVAILABLE.test(outcome))).toEqual([])
    expect([...holders.outcomes.keys()].filter(outcome => !/ (?:200|412|503)$/.test(outcome))).toEqual([])
    reportProof(
      `${rivals.holders.size} acknowledged names, ${holders.successes()} acknowledged leases: none lost, ` +
        JSON.stringify(Object.fromEntries([...rivals.outcomes, ...holders.outcomes])),
    )
  },
  1_200_000,
)

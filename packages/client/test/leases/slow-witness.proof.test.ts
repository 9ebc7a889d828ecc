import { setTimeout as sleep } from 'node:timers/promises'
import { until } from '@pool/test-kit/poll.ts'
import { proofSize, reportProof } from '@pool/test-kit/proof-size.ts'
import { startTcpProxy } from '@pool/test-kit/tcp-proxy.ts'
import { expect, test } from 'vitest'
import { startCandidate, startObserver } from './support/candidates.ts'
import { startPostgresWitness, startWitness } from './support/witness.ts'

const DURATIONS = { leaseDuration: 6_000, renewDeadline: 4_000, retryPeriod: 1_000 } as const
const OBSERVED_MS = proofSize(60_000, 20_000)

const LATE_BY = [500, 1_200, 1_800, 2_500] as const

test.each([
  ['workerd', () => startWitness()],
  ['Postgres', startPostgresWitness],
] as const)(
  'one of two processes leads 90 %% of the time if responses take less than half of the renew deadline, and again and again if they take longer: witness on %s',
  { timeout: 300_000 + OBSERVED_MS },
  async (host, start) => {
    await using cleanup = new AsyncDisposableStack()
    const { port, token } = cleanup.use(await start())
    const observer = cleanup.use(await startObserver())
    /** The starts and stops of a slot. */
    const readEvents = (slot: string) =>
      observer
        .readLog()
        .split('\n')
        .map(line => line.split(' '))
        .filter(([, , , name]) => name === slot)
        .map(([at, , event]) => ({ at: Number(at), event }))
    const candidates = LATE_BY.flatMap(lateMs => ['a', 'b'].map(name => ({ lateMs, name: `${name}-${lateMs}` })))
    const processes = await Promise.all(
      candidates.map(async ({ lateMs, name }) => {
        const proxy = await startTcpProxy(port)
        cleanup.defer(() => proxy.close())
        proxy.delay(lateMs, 0)
        const url = `http://127.0.0.1:${proxy.port}`
        const slots = [`late-by-${lateMs}`]
        return cleanup.use(await startCandidate({ name, url, token, slots, pipe: observer.pipe, durations: DURATIONS }))
      }),
    )
    const shares = await Promise.all(
      LATE_BY.map(async lateMs => {
        const slot = `late-by-${lateMs}`
        const from = (await until(`a leader of ${slot}`, () => readEvents(slot)[0], 120_000)).at
        await sleep(OBSERVED_MS)
        const to = from + OBSERVED_MS
        const events = readEvents(slot).filter(({ at }) => at < to)
        let ledMs = 0
        for (const [index, { at, event }] of events.entries())
          if (event === 'start') ledMs += (events[index + 1]?.at ?? to) - at
        return { lateMs, share: ledMs / OBSERVED_MS, tenures: events.filter(({ event }) => event === 'start').length }
      }),
    )
    await Promise.all(processes.map(process => process.stop()))
    const { overlaps, violations } = await observer.summarize()
    const texts = shares.map(
      ({ lateMs, share, tenures }) => `${lateMs / 1_000} s: ${(share * 100).toFixed(1)} % in ${tenures} tenures`,
    )
    reportProof(
      `slow witness on ${host}, lease 6 s, a leader for ${OBSERVED_MS / 1_000} s with responses late by ${texts.join('; ')}; ${overlaps.length} overlaps, ${violations.length} violations`,
    )
    expect({ overlaps, violations }).toEqual({ overlaps: [], violations: [] })
    for (const { lateMs, share, tenures } of shares) {
      if (lateMs < DURATIONS.renewDeadline / 2) expect([lateMs, share >= 0.9]).toEqual([lateMs, true])
      else expect(tenures).toBeGreaterThan(1)
    }
  },
)

import { shouldSkip } from '@pool/test-kit/optional-deps.ts'
import { missingPgbouncer, startPgbouncer } from '@pool/test-kit/pgbouncer.ts'
import { until } from '@pool/test-kit/poll.ts'
import { expect, test } from 'vitest'
import { createTestDatabase, startTestReplica } from './support/database.ts'

const isSkipped = shouldSkip(missingPgbouncer)
const REPLICAS = 2

test.skipIf(isSkipped)(
  'behind PgBouncer in transaction mode: replicas grant, and notify over a direct connection',
  async () => {
    await using database = await createTestDatabase()
    const pgbouncer = await startPgbouncer(database.url, 4)
    const start = () => startTestReplica(`${pgbouncer.url}?prepare=false`, { listenUrl: database.url })
    const replicas = await Promise.all(Array.from({ length: REPLICAS }, start))
    try {
      const slots = Array.from({ length: 50 }, (_, index) => `slot-${index}`)
      const acquire = (slot: string, number: number) =>
        replicas[number % REPLICAS]?.leases.write(
          { slot, encoded: slot },
          { kind: 'acquire', holder: `holder-${number}`, ttlMs: 60_000, generation: 0 },
          '',
        )
      const outcomes = await Promise.all(slots.flatMap(slot => [0, 1, 2, 3].map(number => acquire(slot, number))))
      expect(outcomes.filter(outcome => outcome?.kind === 'granted')).toHaveLength(slots.length)
      expect(outcomes.filter(outcome => outcome?.kind === 'rejected')).toHaveLength(3 * slots.length)

      const [writer, waiter] = replicas
      const address = { slot: 'slot-0', encoded: 'slot-0' }
      const wait = waiter?.leases.wait(address, {
        caller: '',
        condition: { kind: 'vacant' },
        known: [],
        maxMs: 60_000,
        signal: new AbortController().signal,
      })
      await until('the client waits', () => waiter?.waits.countWaiters('slot-0') === 1)
      const held = await writer?.leases.read(address, [])
      if (held?.kind !== 'lease') throw new Error(`not held: ${held?.kind}`)
      const { holder, generation } = held.lease
      expect(await writer?.leases.write(address, { kind: 'release', holder, generation }, '')).toMatchObject({
        kind: 'released',
      })
      expect(await wait).toMatchObject({ kind: 'lease', lease: { holder: '', generation: 2 } })
    } finally {
      await Promise.all(replicas.map(replica => replica.close()))
      await pgbouncer.stop()
    }
  },
)

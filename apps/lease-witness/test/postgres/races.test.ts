import { proofSize, reportProof } from '@pool/test-kit/proof-size.ts'
import { type Replicas, type Service, startReplicas, startWitness } from '@pool/test-kit/services.ts'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import {
  connect,
  MAX_WRITERS,
  prepareRaces,
  type Race,
  runRaces,
  SLOT_STATES,
  waitForExpiry,
} from '../process/support/race.ts'
import { createTestDatabase, type TestDatabase } from './support/database.ts'

const ROUNDS = proofSize(500, 50)

describe('concurrent writers on two replicas', () => {
  const cases = SLOT_STATES.flatMap(state => [2, 8, MAX_WRITERS].map(writers => ({ state, writers })))
  let database: TestDatabase
  let replicas: Replicas<Service>
  /** Prepared for all cases first, so that the short leases expire during the other cases. */
  const prepared = new Map<(typeof cases)[number], readonly Race[]>()

  beforeAll(async () => {
    database = await createTestDatabase({ schema: false, connections: 1 })
    replicas = await startReplicas(2, () => startWitness(database.url))
    using client = await connect(replicas.replicas.map(({ port }) => port))
    for (const row of cases) {
      prepared.set(row, await prepareRaces(client.connections, row.state, row.writers, ROUNDS))
    }
  }, 180_000)
  afterAll(async () => {
    await replicas?.[Symbol.asyncDispose]()
    await database?.[Symbol.asyncDispose]()
    reportProof(`${ROUNDS} races on two replicas for each of ${cases.length} combinations of slot state and writers`)
  })

  test.each(cases)(
    `$writers writers on a slot that is $state: exactly one is granted the lease, the others see it, ${ROUNDS} times`,
    async row => {
      const races = prepared.get(row) ?? []
      await waitForExpiry(races)
      using client = await connect(replicas.replicas.map(({ port }) => port))
      const results = await runRaces(client.connections, races, row.writers)
      expect(results.flatMap(({ violations }) => violations)).toEqual([])
      expect(results.map(({ grants }) => grants)).toEqual(Array(ROUNDS).fill(1))
    },
    180_000,
  )
})

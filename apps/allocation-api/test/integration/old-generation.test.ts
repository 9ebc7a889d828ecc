import { randomUUID } from 'node:crypto'
import { getHeapSpaceStatistics, setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { createBatcher } from '@pool/runtime/database/batcher'
import { disablePretenuring } from '@pool/runtime/service/run-service'
import { describe, expect, test } from 'vitest'
import { useTestDatabase } from '../support/database.ts'

setFlagsFromString('--expose-gc')
const collect: (options?: { type: 'minor' }) => void = runInNewContext('gc')

const ROUNDS = 100
const REQUESTS = 32
const PAYLOAD_BYTES = 20_000
/** A tenth of what all requests carry. */
const MAX_KEPT_BYTES = (ROUNDS * REQUESTS * PAYLOAD_BYTES) / 10

const createPayload = (): string => JSON.stringify({ id: randomUUID(), text: 'x'.repeat(PAYLOAD_BYTES) })

const oldGenerationBytes = (): number =>
  getHeapSpaceStatistics()
    .filter(({ space_name: name }) => name === 'old_space' || name === 'large_object_space')
    .reduce((total, { space_used_size: bytes }) => total + bytes, 0)

/**
 * The bytes by which the old generation grows while requests come in rounds, each of which ends before the next. An object of
 * the old generation keeps what it refers to until that generation is collected, also if it is garbage.
 */
const measureKeptBytes = async (send: () => Promise<unknown>): Promise<number> => {
  const sendAll = () => Promise.all(Array.from({ length: REQUESTS }, async () => void (await send())))
  await sendAll()
  // Moves what the requests use to the old generation.
  const isSent = sendAll()
  collect()
  await isSent
  const before = oldGenerationBytes()
  let kept = 0
  // Not a loop with `await`: the frame of an async function keeps what its last one waited for.
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  const sendRounds = (count: number): void => {
    if (count === 0) {
      resolve()
      return
    }
    sendAll().then(() => {
      kept = Math.max(kept, oldGenerationBytes() - before)
      setImmediate(sendRounds, count - 1)
    }, reject)
    collect({ type: 'minor' })
  }
  sendRounds(ROUNDS)
  await promise
  return kept
}

describe('a request that has ended keeps no later one in memory', async () => {
  disablePretenuring()
  const database = await useTestDatabase()
  const createCall = () =>
    createBatcher<string, string>({
      execute: async requests => {
        await database.sql`select 1`
        return requests
      },
      maxInFlight: 2,
      maxBatchSize: 10,
      slowMs: 60_000,
      timeoutMs: 60_000,
    })

  test('statements', async () => {
    const { sql } = database
    const send = async () => await sql.unsafe('select length($1::text)', [createPayload()], { prepare: true })
    expect(await measureKeptBytes(send)).toBeLessThan(MAX_KEPT_BYTES)
  })

  test('requests that share statements', async () => {
    const call = createCall()
    expect(await measureKeptBytes(() => call(createPayload()))).toBeLessThan(MAX_KEPT_BYTES)
  })

  test('requests that share statements and have rows', async () => {
    const call = createCall()
    expect(await measureKeptBytes(() => call(createPayload(), [randomUUID()]))).toBeLessThan(MAX_KEPT_BYTES)
  })
})

import { migrate } from '@pool/runtime/database/migrations'
import { dumpSchema } from '@pool/test-kit/dump-schema.ts'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { readSchema } from '../../src/postgres/schema.ts'
import { createTestDatabase, createTestRepository, type TestDatabase } from './support/database.ts'

const schema = await readSchema()

let database: TestDatabase
beforeAll(async () => {
  database = await createTestDatabase({ schema: false, connections: 1 })
})
afterAll(() => database[Symbol.asyncDispose]())

test('the newest version matches its golden dump; a build of version 1 still writes, also with a prepared statement', async () => {
  const { sql } = database
  await migrate(sql, { ...schema, migrations: schema.migrations.slice(0, 1) })
  await sql`select from start_lease_epoch(false)`
  /** As version 1 writes. It does not know the value. */
  const renewAsVersion1 = async (generation: number) => {
    const write = { position: 0, slot: 'a', kind: 'acquire', holder: 'h', ttl_ms: 60_000, token: 't', generation }
    const [row] = await sql`
      select outcome, holder, acquired_at as "acquiredAt", written_at as "writtenAt", expires_at as "expiresAt",
        generation, decided_at as now
      from write_leases(true, ${sql.json([write])}::jsonb) order by position`
    return row
  }
  expect(await renewAsVersion1(0)).toMatchObject({ outcome: 'granted', generation: 1 })

  await migrate(sql, schema)
  const name = `./golden/${String(schema.migrations.length).padStart(4, '0')}.txt`
  await expect(await dumpSchema(sql)).toMatchFileSnapshot(new URL(name, import.meta.url).pathname)

  const { readMany, write } = createTestRepository(sql)
  expect((await readMany(['a']))[0]?.lease).toMatchObject({ holder: 'h', generation: 1 })
  expect(await renewAsVersion1(1)).toMatchObject({ outcome: 'renewed', generation: 2 })
  const request = { kind: 'renew', holder: 'h', ttlMs: 60_000, generation: 2, value: 'x' } as const
  expect(await write({ slot: 'a', request, caller: 't' })).toMatchObject({ outcome: 'renewed', lease: { value: 'x' } })
  expect(await renewAsVersion1(3)).not.toHaveProperty('value')
  expect((await readMany(['a']))[0]?.lease).toMatchObject({ value: 'x', generation: 4 })
})

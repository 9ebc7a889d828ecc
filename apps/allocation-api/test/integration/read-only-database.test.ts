import { createDatabaseClient } from '@pool/runtime/database/client'
import { NO_WRITABLE_SERVER } from '@pool/runtime/database/errors'
import { until } from '@pool/test-kit/poll.ts'
import { type Api, startApi } from '@pool/test-kit/services.ts'
import postgres from 'postgres'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createTestDatabase, getTestDsn, type TestDatabase } from '../support/database.ts'
import { check, reserve } from '../support/operations.ts'
import { expectContract } from '../support/validate.ts'

let database: TestDatabase
let api: Api
const server = postgres(getTestDsn(), { max: 1, onnotice: () => {} })

beforeAll(async () => {
  database = await createTestDatabase({ connections: 1 })
  api = await startApi(database.url)
})
afterAll(async () => {
  await api.process.stop()
  await server.end()
  await database.drop()
})

const getReadiness = async () => (await api.call('GET', '/readyz')).status
/** Each connection of the pools gets some of them. */
const reserveMany = (prefix: string) =>
  Promise.all(Array.from({ length: 40 }, (_, index) => reserve(api, `${prefix}-${index}`)))

const expectReadOnly = async (name: string) => {
  const response = await until('writes are rejected', async () => {
    const attempt = await reserve(api, name)
    return attempt.body.error === 'database-read-only' && attempt
  })
  expectContract('POST', '/api/v1/pool/pool.test/reserve', response)
  expect([response.status, response.headers.get('retry-after')]).toEqual([503, '5'])
  expect(response.body.detail).toMatch(/The write did not take effect/)
  await until('it is not ready', async () => (await getReadiness()) === 503)
  expect((await api.call('GET', '/livez')).status).toBe(200)
  expect((await check(api, name)).body.available).toBe(true)
}

const expectReadyAgain = async (prefix: string) => {
  await until('it is ready', async () => (await getReadiness()) === 200)
  const statuses = (await reserveMany(prefix)).map(({ status }) => status)
  expect(statuses).toEqual(statuses.map(() => 201))
}

// As managed databases do while their disk is full. The setting applies to new sessions.
test('a read-only database: 503 without an effect, not ready, and no session stays read-only', async () => {
  await reserveMany('before')
  const name = new URL(database.url).pathname.slice(1)
  await server.unsafe(`alter database ${name} set default_transaction_read_only = on`)
  await server`select pg_terminate_backend(pid) from pg_stat_activity where datname = ${name}`
  await expectReadOnly('while-read-only')
  await reserveMany('rejected')
  await server.unsafe(`alter database ${name} reset default_transaction_read_only`)
  await expectReadyAgain('after')
})

test('target_session_attrs=read-write rejects a read-only database, and accepts it again', async () => {
  const name = new URL(database.url).pathname.slice(1)
  const sql = createDatabaseClient(`${database.url}?target_session_attrs=read-write`, {
    maxConnections: 1,
    applicationName: 'read-write',
  })
  await server.unsafe(`alter database ${name} set default_transaction_read_only = on`)
  await expect(sql`select 1 as one`).rejects.toMatchObject({ code: NO_WRITABLE_SERVER })
  await server.unsafe(`alter database ${name} reset default_transaction_read_only`)
  const isConnected = () => sql`select 1 as one`.then(() => true).catch(() => false)
  await until('it connects', isConnected)
  await sql.end({ timeout: 1 })
})

test('a full disk: 503 without an effect, not ready', async () => {
  await database.sql.unsafe(`
    create function fail_as_full_disk() returns trigger language plpgsql as
      $$ begin raise exception 'no space' using errcode = '53100'; end $$;
    create trigger full_disk before insert or update on pool_allocations execute function fail_as_full_disk();
    create trigger full_disk before insert or update on write_probes execute function fail_as_full_disk()`)
  await expectReadOnly('while-full')
  await database.sql.unsafe('drop function fail_as_full_disk cascade')
  await expectReadyAgain('with-space')
})

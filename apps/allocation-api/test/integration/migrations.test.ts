import { createDatabaseClient } from '@pool/database/client'
import { migrate } from '@pool/database/migrations'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { migrateDatabase, readSchema } from '../../src/database/migrate.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { dumpSchema } from '../support/dump-schema.ts'

const schema = await readSchema()
const versions = schema.migrations.map(({ version }) => version)
const upTo = (version: number) => ({ ...schema, migrations: schema.migrations.slice(0, version) })
const toFileName = (version: number): string => String(version).padStart(4, '0')

describe('migrations', () => {
  let database: TestDatabase
  beforeAll(async () => {
    database = await createTestDatabase({ schema: false })
  })
  afterAll(() => database.drop())

  // In order, on one database.
  test.each(versions)('version %i matches its golden dump', async version => {
    await migrate(database.sql, upTo(version))
    await expect(await dumpSchema(database.sql)).toMatchFileSnapshot(`./golden/${toFileName(version)}.txt`)
  })

  test('ten replicas migrate an empty database concurrently', async () => {
    const empty = await createTestDatabase({ schema: false })
    const replicas = Array.from({ length: 10 }, () =>
      createDatabaseClient(empty.url, { maxConnections: 1, applicationName: 'replica' }),
    )
    await Promise.all(replicas.map(replica => migrateDatabase(replica)))
    expect(await dumpSchema(empty.sql)).toBe(await dumpSchema(database.sql))
    await Promise.all(replicas.map(replica => replica.end()))
    await empty.drop()
  })
})

import { migrate } from '@pool/runtime/database/migrations'
import { dumpSchema } from '@pool/test-kit/dump-schema.ts'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { readSchema } from '../../src/postgres/schema.ts'
import { createTestDatabase, type TestDatabase } from './support/database.ts'

const schema = await readSchema()

let database: TestDatabase
beforeAll(async () => {
  database = await createTestDatabase({ schema: false, connections: 1 })
})
afterAll(() => database[Symbol.asyncDispose]())

// In order, on one database.
test.each(schema.migrations.map(({ version }) => version))('version %i matches its golden dump', async version => {
  const { sql } = database
  await migrate(sql, { ...schema, migrations: schema.migrations.slice(0, version) })
  const name = `./golden/${String(version).padStart(4, '0')}.txt`
  await expect(await dumpSchema(sql)).toMatchFileSnapshot(new URL(name, import.meta.url).pathname)
})

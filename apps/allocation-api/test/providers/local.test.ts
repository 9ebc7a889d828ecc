import { createDatabaseClient } from '@pool/runtime/database/client'
import postgres from 'postgres'
import type { RecordChange } from '../../src/dns/domain/rrset.ts'
import { createLocalProvider, createZoneTable } from '../../src/dns/providers/local/provider.ts'
import { createTestDatabase, getTestDsn } from '../support/database.ts'
import { describeConformance, type ProviderSubject } from './conformance.ts'

const ZONE = 'conformance.test'

/** The zone is a table: tests write the table directly, and dropping the database removes it. */
const startLocalSubject = async (): Promise<ProviderSubject> => {
  const database = await createTestDatabase()
  const admin = postgres(getTestDsn(), { max: 1, onnotice: () => {} })
  const sql = createDatabaseClient(database.url, { maxConnections: 2, applicationName: 'provider' })
  const provider = createLocalProvider({ table: createZoneTable(sql), onError: () => {} })
  const table = createZoneTable(database.sql)
  const name = new URL(database.url).pathname.slice(1)
  const write = async (change: RecordChange) => {
    const { serial } = await table.read(ZONE, [])
    if ((await table.apply(ZONE, [change], serial)) === null) throw new Error('the table was written concurrently')
  }
  return {
    provider: {
      ...provider,
      async close() {
        await provider.close()
        await sql.end({ timeout: 1 })
      },
    },
    zone: ZONE,
    records: async () => (await table.read(ZONE, [ZONE])).records.toSorted((a, b) => compareKeys(a, b)),
    put: set => write({ kind: 'upsert', set }),
    remove: (owner, type) => write({ kind: 'delete', name: owner, type }),
    async stop() {
      await admin.unsafe(`alter database ${name} with allow_connections false`)
      await admin`select pg_terminate_backend(pid) from pg_stat_activity where datname = ${name}`
    },
    async start() {
      await admin.unsafe(`alter database ${name} with allow_connections true`)
    },
    secrets: [],
    async [Symbol.asyncDispose]() {
      await database.drop()
      await admin.end()
    },
  }
}

const compareKeys = (a: { name: string; type: string }, b: { name: string; type: string }): number =>
  `${a.name} ${a.type}` < `${b.name} ${b.type}` ? -1 : 1

describeConformance('local', startLocalSubject, { hasKey: false, hasEveryZone: true })

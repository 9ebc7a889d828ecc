import { expect, test } from 'vitest'
import { type DatabaseClientFacts, type DatabaseFacts, judgeDatabase } from './database.ts'

const goodFacts: DatabaseFacts = {
  version: '15.18',
  versionNumber: 150_018,
  role: 'pdm',
  isSuperuser: false,
  schema: 'public',
  isStandby: false,
  isReadOnly: false,
  roleConnectionLimit: null,
  maxConnections: 97,
  durability: 'synchronous',
  clockDifferenceMs: 20,
  isPooled: false,
}
const goodClient: DatabaseClientFacts = {
  urlVariable: 'PDM_DATABASE_URL',
  hosts: ['db.internal'],
  verify: 'host',
  connections: 31,
}
const findProblems = (facts: Partial<DatabaseFacts>, client: Partial<DatabaseClientFacts> = {}) =>
  judgeDatabase({ ...goodFacts, ...facts }, { ...goodClient, ...client }).filter(({ state }) => state === 'bad')

test.each<readonly [what: string, facts: Partial<DatabaseFacts>, client: Partial<DatabaseClientFacts>]>([
  ['everything is as it should be', {}, {}],
  ['no standby', { durability: 'single' }, {}],
  ['a local socket without TLS', {}, { hosts: ['/run/postgresql'], verify: null }],
  ['the default host without TLS', {}, { hosts: [], verify: null }],
  ['loopback without TLS', {}, { hosts: ['127.0.0.1', '::1', 'localhost'], verify: null }],
  ['TLS with an authority', {}, { verify: 'authority' }],
  ['TLS without verification', {}, { verify: 'none' }],
  ['few connections behind a pooler', { isPooled: true, maxConnections: 10 }, {}],
  ['clocks that differ by as much as a slow query', { clockDifferenceMs: -9_000 }, {}],
])('no problem: %s', (_, facts, client) => expect(findProblems(facts, client)).toEqual([]))

type Problem = readonly [
  what: string,
  check: string,
  advice: RegExp,
  facts: Partial<DatabaseFacts>,
  client?: Partial<DatabaseClientFacts>,
]
const problems: readonly Problem[] = [
  ['an old server', 'database version', /upgrade/, { version: '13.9', versionNumber: 130_009 }],
  ['a superuser', 'database role', /create role/, { isSuperuser: true }],
  ['no schema', 'database schema', /search_path/, { schema: null }],
  ['no TLS', 'database tls', /sslmode=verify-full/, {}, { verify: null }],
  ['no TLS to one of two hosts', 'database tls', /sslmode/, {}, { verify: null, hosts: ['127.0.0.1', '10.0.0.1'] }],
  ['a standby', 'database writes', /primary/, { isStandby: true, isReadOnly: true }],
  ['a read-only database', 'database writes', /default_transaction_read_only = off/, { isReadOnly: true }],
  ['asynchronous replication', 'database replication', /synchronous_standby_names/, { durability: 'asynchronous' }],
  ['writes without fsync', 'database replication', /fsync/, { durability: 'volatile' }],
  ['few connections', 'database connections', /max_connections/, { maxConnections: 30 }],
  ['a limit of the role', 'database connections', /limit of the role/, { roleConnectionLimit: 5 }],
  ['a clock that is behind', 'clock', /NTP/, { clockDifferenceMs: -60_000 }],
  ['a clock that is ahead', 'clock', /NTP/, { clockDifferenceMs: 60_000 }],
]
test.each(problems.map(problem => ({ what: problem[0], problem })))('one problem: $what', ({ problem }) => {
  const [, check, advice, facts, client] = problem
  expect(findProblems(facts, client)).toMatchObject([{ check, advice: expect.stringMatching(advice) }])
})

import { bad, type Finding, good } from './report.ts'

/** What the server says of itself and of the role. */
export interface DatabaseFacts {
  readonly version: string
  /** Such as 150018. */
  readonly versionNumber: number
  readonly role: string
  readonly isSuperuser: boolean
  /** Null: the search_path of the role has no schema that exists. */
  readonly schema: string | null
  readonly isStandby: boolean
  readonly isReadOnly: boolean
  /** Null: the role has no limit of its own. */
  readonly roleConnectionLimit: number | null
  readonly maxConnections: number
  /** Of the write-ahead log on standbys and disks. */
  readonly durability: 'synchronous' | 'single' | 'asynchronous' | 'volatile'
  /** The clock of the server minus that of this machine, in milliseconds. */
  readonly clockDifferenceMs: number
  /** Whether a connection pooler is in between. */
  readonly isPooled: boolean
}

export interface DatabaseClientFacts {
  readonly urlVariable: string
  /** The hosts of the connection string. */
  readonly hosts: readonly string[]
  /** Null: the connection is not encrypted. */
  readonly verify: 'none' | 'authority' | 'host' | null
  /** Connections that one process of the service can open. */
  readonly connections: number
}

/** The oldest release with client_connection_check_interval, which ends statements of clients that are gone. */
const MIN_VERSION = 140_000
/** Below what object storage and DNS servers accept, and far above the delay of a query. */
const MAX_CLOCK_DIFFERENCE_MS = 10_000

const isLocalHost = (host: string): boolean =>
  host === '' || host === 'localhost' || host === '::1' || host.startsWith('127.') || host.startsWith('/')

const judgeTls = ({ hosts, verify, urlVariable }: DatabaseClientFacts): Finding => {
  const check = 'database tls'
  if (verify === 'host' || verify === 'authority') return good(check, 'encrypted, and the certificate is verified')
  if (hosts.every(isLocalHost)) return good(check, 'the connection does not leave this machine')
  return verify === 'none'
    ? good(check, 'encrypted, but the certificate is not verified; sslmode=verify-full would detect another server')
    : bad(
        check,
        'passwords and data cross the network unencrypted',
        `add sslmode=verify-full&sslrootcert=<file> to ${urlVariable}`,
      )
}

const judgeConnections = (facts: DatabaseFacts, { connections }: DatabaseClientFacts): Finding[] => {
  // A pooler shares its connections.
  if (facts.isPooled) return []
  const check = 'database connections'
  const limit = Math.min(facts.maxConnections, facts.roleConnectionLimit ?? facts.maxConnections)
  const text = `${limit} are allowed; each process of the service opens up to ${connections}`
  return limit < connections
    ? [bad(check, text, 'raise max_connections or the limit of the role, or lower PDM_DATABASE_POOL_SIZE')]
    : [good(check, text)]
}

const judgeDurability = ({ durability }: DatabaseFacts): Finding => {
  const check = 'database replication'
  switch (durability) {
    case 'synchronous':
      return good(check, 'a commit is on a standby when it is acknowledged')
    case 'single':
      return good(check, 'there is no standby; a commit is on the disk of the server when it is acknowledged')
    case 'asynchronous':
      return bad(
        check,
        'a standby that is promoted can lack acknowledged writes',
        'set synchronous_standby_names, and synchronous_commit to on',
      )
    case 'volatile':
      return bad(
        check,
        'a crash of the server can lose acknowledged writes',
        'set fsync and synchronous_commit to on, for the server and for the role',
      )
  }
}

/** The findings that need no further statement. */
export const judgeDatabase = (facts: DatabaseFacts, client: DatabaseClientFacts): readonly Finding[] => {
  const { version, versionNumber, role, schema } = facts
  const seconds = Math.round(Math.abs(facts.clockDifferenceMs) / 1_000)
  return [
    versionNumber < MIN_VERSION
      ? bad('database version', `Postgres ${version} is older than 14`, 'upgrade the server to a supported release')
      : good('database version', `Postgres ${version}`),
    judgeTls(client),
    facts.isSuperuser
      ? bad(
          'database role',
          `${role} is a superuser, so a defect of the service could reach every database`,
          "create a role that owns this database only: create role pdm login password '…'; alter database <name> owner to pdm",
        )
      : good('database role', `${role} is not a superuser`),
    ...(schema === null
      ? [
          bad(
            'database schema',
            'the search_path of the role has no existing schema',
            'create the schema, or correct search_path',
          ),
        ]
      : []),
    facts.isStandby || facts.isReadOnly
      ? bad(
          'database writes',
          facts.isStandby ? 'the server is a standby' : 'the database is read-only (default_transaction_read_only)',
          facts.isStandby
            ? `let ${client.urlVariable} lead to the primary, or list all hosts in it`
            : 'alter database <name> set default_transaction_read_only = off, and of the role the same',
        )
      : good('database writes', 'the server accepts writes'),
    judgeDurability(facts),
    ...judgeConnections(facts, client),
    Math.abs(facts.clockDifferenceMs) > MAX_CLOCK_DIFFERENCE_MS
      ? bad(
          'clock',
          `the clocks of this machine and of the database server differ by ${seconds} s`,
          'synchronize both with NTP',
        )
      : good('clock', 'this machine and the database server agree'),
  ]
}

import { createHash, randomUUID } from 'node:crypto'
import { rm, stat } from 'node:fs/promises'
import { ClientError } from '@pool/client'
import { createdBy, type ExportLine, isHostName, loadBalancerIP, type ServiceSettings, subdomain } from '@pool/contract'
import type { CommandSpec } from '../command.ts'
import { CommandError, EXIT, LocalError, UsageError } from '../exit-codes.ts'
import type { ListView } from '../output.ts'
import { hasErrorCode, readPrivateFile, writePrivateFile } from '../private-file.ts'
import type { Column } from '../table.ts'
import { toCount } from '../text.ts'
import { dryRunFlag, toRequiredText, toText, yesFlag } from './flags.ts'

/** A row of the table `pool_allocations` of pool-domain-manager. Times are text, so that no digit is lost. */
interface PdmRow {
  readonly poolDomain: string
  readonly subdomain: string
  readonly state: 'reserved' | 'active'
  readonly reservedAt: string
  readonly expiresAt: string | null
  readonly address: string | null
  /** Null if the name is active: the original forgets the token at the commit. */
  readonly token: string | null
  readonly createdBy: string
  readonly isExpired: boolean
}

/** Milliseconds for the read of the table. */
const READ_TIMEOUT_MS = 300_000

const connect = async (url: string) => {
  // No other command needs it.
  const { createDatabaseClient } = await import('@pool/runtime/database/client')
  const options = { maxConnections: 1, applicationName: 'poolctl', maxStatementMs: READ_TIMEOUT_MS, expires: false }
  try {
    return createDatabaseClient(url, options)
  } catch {
    throw new UsageError('the connection string is not valid; write postgres://user:password@host:5432/database.')
  }
}

/** Reads the table in one snapshot of a transaction that cannot write. */
const readRows = async (url: string): Promise<readonly PdmRow[]> => {
  const sql = await connect(url)
  try {
    await sql.unsafe(`begin isolation level repeatable read, read only; set local timezone = 'UTC'`)
    return await sql<PdmRow[]>`
      select pool_domain as "poolDomain", subdomain, state, reserved_at::text as "reservedAt",
        expires_at::text as "expiresAt", load_balancer_ip as address, reservation_token::text as token,
        created_by as "createdBy", state = 'reserved' and expires_at <= now() as "isExpired"
      from pool_allocations order by pool_domain, subdomain`
  } catch (error) {
    if (hasErrorCode(error, '42P01') || hasErrorCode(error, '42703')) {
      const text = 'the database has no table pool_allocations of pool-domain-manager; check the connection string.'
      throw new CommandError(text, EXIT.usage)
    }
    const code = error instanceof Error && 'code' in error ? ` (${error.code})` : ''
    throw new LocalError(`the database of pool-domain-manager cannot be read${code}; check the connection string.`)
  } finally {
    await sql.end({ timeout: 0 })
  }
}

/** What this service does not accept of a row; null: nothing. */
export const findRowError = (row: PdmRow): string | null => {
  if (!isHostName(`a.${row.poolDomain}`)) return `the pool ${JSON.stringify(row.poolDomain)} is not a domain`
  if (subdomain.safeParse(row.subdomain).data !== row.subdomain) return 'the subdomain is not valid'
  if (createdBy.safeParse(row.createdBy).data !== row.createdBy) return 'created_by is not valid'
  if (row.state === 'reserved') return row.token === null || row.expiresAt === null ? 'it has no token or expiry' : null
  return loadBalancerIP.safeParse(row.address).data === row.address ? null : 'load_balancer_ip is not valid'
}

const hashToken = (token: string): string => `\\x${createHash('sha256').update(token.toLowerCase()).digest('hex')}`

interface NewToken {
  readonly poolDomain: string
  readonly subdomain: string
  readonly reservationToken: string
}

/** The document that the service imports, and the tokens of active names in it. */
export const toImport = (
  rows: readonly PdmRow[],
  { recordNames, recordTtlSeconds: ttl }: Pick<ServiceSettings, 'recordNames' | 'recordTtlSeconds'>,
  createToken: () => string = randomUUID,
): { readonly document: string; readonly tokens: readonly NewToken[] } => {
  const tokens: NewToken[] = []
  const toRow = (table: string, row: Record<string, unknown>): ExportLine => ({ type: 'row', table, row })
  const live = rows.filter(({ isExpired }) => !isExpired)
  const allocations = live.map(row => {
    const { poolDomain, subdomain: label, state, reservedAt, createdBy: created_by } = row
    const isActive = state === 'active'
    const token = isActive ? createToken() : (row.token ?? '')
    if (isActive) tokens.push({ poolDomain, subdomain: label, reservationToken: token })
    return toRow('pool_allocations', {
      ...{ pool_domain: poolDomain, subdomain: label, state, reserved_at: reservedAt, created_by },
      ...{ expires_at: isActive ? null : row.expiresAt, token_hash: hashToken(token) },
      // The original has no time of the commit.
      ...{ committed_at: isActive ? reservedAt : null, sovereign_fqdn: isActive ? `${label}.${poolDomain}` : null },
      load_balancer_ip: isActive ? row.address : null,
    })
  })
  const history = live.flatMap(({ poolDomain, subdomain: label, state, reservedAt, createdBy: created_by }) => {
    const common = { pool_domain: poolDomain, subdomain: label, at: reservedAt, actor: 'operator', created_by }
    const detail = 'Imported from pool-domain-manager.'
    const reserved = { ...common, event: 'reserved', from_state: 'none', to_state: 'reserved', detail }
    const committed = { ...common, event: 'committed', from_state: 'reserved', to_state: 'active', detail }
    return [reserved, ...(state === 'active' ? [committed] : [])].map(row => toRow('allocation_history', row))
  })
  const records = rows.map(({ poolDomain, subdomain: label, state, address, reservedAt }, index) => {
    const fqdn = `${label}.${poolDomain}`
    const desired = recordNames.map(relative => ({
      ...{ name: relative === '@' ? fqdn : `${relative}.${fqdn}`, type: 'A', ttl, values: [address] },
    }))
    return toRow('dns_names', {
      ...{ zone: poolDomain, subdomain: label, version: index + 1, desired: state === 'active' ? desired : [] },
      ...{ changed_at: reservedAt, next_attempt_at: reservedAt },
      // The delegation that the original makes at a reservation goes in the change that brings the records.
      owned: ['NS', 'DS'].map(type => ({ name: fqdn, type })),
    })
  })
  const table = [...allocations, ...history, ...records]
  const lines: readonly ExportLine[] = [
    { type: 'header', format: 'pool-allocation-export', version: 1, schema: 1 },
    ...table,
    { type: 'sequence', name: 'dns_version', value: rows.length },
    { type: 'end', rows: table.length },
  ]
  return { document: lines.map(line => `${JSON.stringify(line)}\n`).join(''), tokens }
}

interface ListedRow {
  readonly name: string
  readonly state: string
  readonly address?: string | undefined
}

const columns: readonly Column<ListedRow>[] = [
  { header: 'NAME', value: ({ name }) => name },
  { header: 'STATE', value: ({ state }) => state },
  { header: 'ADDRESS', value: ({ address }) => address },
]

const toListed = ({ poolDomain, subdomain: label, state, address, isExpired }: PdmRow): ListedRow => ({
  name: `${label}.${poolDomain}`,
  state: isExpired ? 'expired' : state,
  ...(state === 'active' && address !== null ? { address } : {}),
})

const toRowErrors = (rows: readonly PdmRow[]): readonly string[] =>
  rows.flatMap(row => {
    const error = findRowError(row)
    return error === null ? [] : [`${row.subdomain}.${row.poolDomain}: ${error}`]
  })

const listView: ListView<ListedRow> = {
  key: 'names',
  columns,
  toName: ({ name }) => name,
  empty: 'The table has no names that can be imported.',
}

/** A path where no file is: the tokens of an earlier run may be in use. */
const requireNewFile = async (path: string): Promise<void> => {
  const exists = await stat(path).catch(() => null)
  if (exists) throw new UsageError(`${path} exists; name a new file for the tokens.`)
}

export const migrateCommand: CommandSpec = {
  name: 'migrate-from-pdm',
  summary: 'Import the names of the pool-domain-manager that ran before',
  description:
    'Reads its table and changes nothing there. Reserved names keep their tokens. Active ones get new tokens, because pool-domain-manager keeps none. Nothing is written to the zones until "poolctl zones resume". The page docs/operate/migrate-from-pdm.md has the whole move.',
  flags: [
    {
      flags: '--database-url-file <path>',
      description: 'a file with the connection string of its database; only you may be able to read it',
      suggest: 'files',
      isRequired: true,
    },
    {
      flags: '--tokens-file <path>',
      description: 'the file to write the new tokens to; it must not exist',
      suggest: 'files',
    },
    dryRunFlag,
    yesFlag,
  ],
  examples: [
    'migrate-from-pdm --database-url-file pdm.url --dry-run',
    'migrate-from-pdm --database-url-file pdm.url --tokens-file tokens.json',
  ],
  operations: ['getSettings', 'importInstallation'],
  async run(session, { flags }) {
    const dryRun = flags.dryRun === true
    const urlFile = toRequiredText(flags.databaseUrlFile, '--database-url-file')
    const tokensFile = toText(flags.tokensFile)
    if (!dryRun && tokensFile === undefined) throw new UsageError('--tokens-file is missing; name a new file.')
    if (tokensFile !== undefined) await requireNewFile(tokensFile)
    const url = (await readPrivateFile(urlFile, 'the file of the connection string'))?.trim()
    if (!url) throw new UsageError(`${urlFile} has no connection string; write it there.`)
    const rows = await readRows(url)
    const errors = toRowErrors(rows)
    if (errors.length > 0) {
      const names = rows.filter(row => findRowError(row) === null).map(toListed)
      if (dryRun) await session.output.report({ dryRun, stoppedZones: [], names }, names, listView)
      const text = `${toCount(errors.length, 'name')} cannot be imported; release ${errors.length === 1 ? 'it' : 'them'} in pool-domain-manager, then repeat:`
      throw new CommandError(text, EXIT.usage, errors)
    }
    const api = await session.api()
    const { document, tokens } = toImport(rows, await api.getSettings(session.reading))
    if (!dryRun) await session.confirm(`Import ${toCount(rows.length, 'name')}?`, 'import', flags.yes === true)
    // Before the import: without them, only an operator could change the names.
    if (!dryRun && tokensFile !== undefined) await writePrivateFile(tokensFile, `${JSON.stringify(tokens, null, 2)}\n`)
    const body = new Blob([document]).stream() as ReadableStream<Uint8Array>
    const result = await session
      .write(options => api.importInstallation({ dryRun, body }, options))
      .catch(async (error: unknown) => {
        const isKnown = error instanceof ClientError && !error.isOutcomeUnknown
        if (isKnown && !dryRun && tokensFile !== undefined) await rm(tokensFile, { force: true })
        throw error
      })
    const listed = rows.map(toListed)
    await session.output.report({ dryRun, stoppedZones: result.stoppedZones, names: listed }, listed, listView)
    if (dryRun) return EXIT.done
    session.output.note(`${tokensFile} has ${toCount(tokens.length, 'new token')} of active names.`)
    for (const zone of result.stoppedZones) {
      session.output.note(
        `Nothing is written to ${zone}. Decide with: poolctl zones resume ${zone} --dry-run --trust database`,
      )
    }
    return EXIT.done
  },
}

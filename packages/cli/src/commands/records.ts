import type { AllocationClient } from '@pool/client'
import { type RecordsToken, type TenantRecord, tokenScopes } from '@pool/contract'
import type { CommandSpec, FlagSpec, Flags, GroupSpec } from '../command.ts'
import { UsageError } from '../exit-codes.ts'
import { writePrivateFile } from '../private-file.ts'
import type { Session } from '../session.ts'
import type { Column } from '../table.ts'
import { toStateColour } from '../text.ts'
import { readMountedTokenFile } from '../token-store.ts'
import { parseCount, parseDuration } from '../values.ts'
import { toText, toTexts, yesFlag } from './flags.ts'
import { deploymentFlag, nameArguments, tokenFileFlag, toNamePath, toPoolName, toProof } from './names.ts'
import { oneCall } from './one-call.ts'
import { webhookCommand } from './records-webhook.ts'

const recordsTokenFlag: FlagSpec = {
  flags: '--token-file <file>',
  description: 'a file with the records token; by default that of PDM_RECORDS_TOKEN_FILE, or the token of the context',
  suggest: 'files',
}
const recordArguments = [
  { name: 'NAME', description: 'the name of the record set, such as shop.acme.pool.example' },
  { name: 'TYPE', description: 'the type, such as A or TXT' },
]
const MAX_DAYS = 3_650
const TTL_LIMITS = { min: 1_000, max: 86_400_000 } as const

/** A client with the records token of the flag, of the environment or of the context. */
const connect = async (session: Session, flags: Flags): Promise<AllocationClient> => {
  const file = toText(flags.tokenFile) ?? session.host.env.PDM_RECORDS_TOKEN_FILE?.trim()
  return file ? session.apiWith(await readMountedTokenFile(file)) : session.api()
}

const columns: readonly Column<TenantRecord>[] = [
  { header: 'NAME', value: ({ name }) => name, isFirm: true },
  { header: 'TYPE', value: ({ type }) => type },
  { header: 'TTL', value: ({ ttl }) => `${ttl}` },
  { header: 'VALUES', value: ({ values }) => values.join(', ') },
  { header: 'OWNER', value: ({ owner }) => owner },
  { header: 'DNS', value: ({ status }) => status, colour: ({ status }) => toStateColour(status) },
]

const list: CommandSpec = {
  name: 'list',
  summary: 'List the records that tenants have set at and below the name of a records token',
  flags: [recordsTokenFlag],
  examples: ['records list --token-file acme-records.token', 'records list -o json'],
  operations: ['listRecords'],
  async run(session, { flags }) {
    const api = await connect(session, flags)
    const result = await api.listRecords(session.reading)
    await session.output.report(result, result.records, {
      key: 'records',
      columns,
      toName: ({ name }) => name,
      empty: `No records of tenants at or below ${result.fqdn}.`,
    })
  },
}

const set: CommandSpec = {
  name: 'set',
  summary: 'Create or replace a record set, and wait until it is served',
  description: 'A record set of another owner is not replaced.',
  arguments: [
    ...recordArguments,
    { name: 'VALUE...', description: 'the values; of TXT without quotes, names with or without the final dot' },
  ],
  flags: [
    { flags: '--ttl <duration>', description: 'the TTL; raised to the minimum of the installation' },
    recordsTokenFlag,
  ],
  examples: [
    'records set shop.acme.pool.example A 203.0.113.20 203.0.113.21 --ttl 5m',
    "records set acme.pool.example MX '10 mail.acme.example'",
  ],
  operations: ['putRecord'],
  async run(session, { args: [name, type, values], flags }) {
    const ttl = toText(flags.ttl)
    const request = {
      name: String(name),
      type: String(type),
      values: [...toTexts(values)],
      ...(ttl !== undefined && { ttl: Math.round(parseDuration(ttl, '--ttl', TTL_LIMITS) / 1_000) }),
    }
    const api = await connect(session, flags)
    const record = await session.write(options => api.putRecord(request, options))
    await session.output.report({ ...record }, [record], {
      key: 'records',
      columns,
      toName: set => set.name,
      empty: '',
    })
  },
}

const remove: CommandSpec = {
  name: 'delete',
  summary: 'Delete a record set',
  arguments: recordArguments,
  flags: [recordsTokenFlag],
  examples: ['records delete shop.acme.pool.example A'],
  operations: ['deleteRecord'],
  async run(session, { args, flags }) {
    const [name, type] = args.map(String) as [string, string]
    const api = await connect(session, flags)
    await session.write(options => api.deleteRecord({ name, type }, options))
    await session.output.done({}, `${name} ${type} is deleted.`, name)
  },
}

const mint: CommandSpec = {
  name: 'mint',
  summary: 'Mint a token for the tools of a tenant, and write it to a file',
  description:
    'The token is not printed. It needs the reservation token of the name, except on the operator listener. It ends when the name is released.',
  arguments: nameArguments,
  flags: [
    { flags: '--scope <scope>', description: 'what it permits', choices: [...tokenScopes], isRequired: true },
    { flags: '--owner <owner>', description: 'whose records it can change: default by default' },
    { flags: '--expires-in-days <days>', description: 'when it ends; with the reservation by default' },
    { flags: '--out-file <file>', description: 'write the token to this file', suggest: 'files' },
    {
      flags: '--accounts-file <file>',
      description: 'write the accounts to this file, as clients of acme-dns read them',
      suggest: 'files',
    },
    tokenFileFlag,
    deploymentFlag,
  ],
  examples: [
    'records tokens mint acme.pool.example --scope acme --accounts-file acme-dns.json',
    'records tokens mint acme pool.example --scope records --owner cluster-1 --out-file acme-records.token',
  ],
  operations: ['mintToken'],
  async run(session, { args, flags }) {
    const name = toPoolName(args)
    const [file, accountsFile, days] = [flags.outFile, flags.accountsFile, flags.expiresInDays].map(toText)
    if (file === undefined && accountsFile === undefined)
      throw new UsageError('the token has no place to go; name a file with --out-file or --accounts-file.')
    const request = {
      ...toNamePath(name),
      ...(await toProof(session, name, flags)),
      scope: flags.scope as (typeof tokenScopes)[number],
      owner: toText(flags.owner),
      ...(days !== undefined && { expiresInDays: parseCount(days, '--expires-in-days', { min: 1, max: MAX_DAYS }) }),
    }
    const api = await session.api()
    const { token, acmeDnsAccounts, ...shown } = await session.write(options => api.mintToken(request, options))
    if (file !== undefined) await writePrivateFile(file, `${token}\n`)
    if (accountsFile !== undefined)
      await writePrivateFile(accountsFile, `${JSON.stringify(acmeDnsAccounts, null, 2)}\n`)
    const { id, scope, owner, expiresAt, fqdn } = shown
    const fields = [
      ['id', id],
      ['name', fqdn],
      ['scope', scope],
      ['owner', owner],
      ['expires at', expiresAt],
    ] as const
    await session.output.item(shown, { name: id, fields })
  },
}

const tokenColumns: readonly Column<RecordsToken>[] = [
  { header: 'ID', value: ({ id }) => id, isFirm: true },
  { header: 'SCOPE', value: ({ scope }) => scope },
  { header: 'OWNER', value: ({ owner }) => owner },
  { header: 'CREATED AT', value: ({ createdAt }) => createdAt },
  { header: 'EXPIRES AT', value: ({ expiresAt }) => expiresAt },
  { header: 'LAST USED', value: ({ lastUsedAt }) => lastUsedAt },
]

const listTokens = oneCall({
  name: 'list',
  summary: 'List the tokens of a name, without the tokens themselves',
  arguments: nameArguments,
  examples: ['records tokens list acme.pool.example'],
  operation: 'listTokens',
  params: ({ args }) => {
    const { pool, subdomain } = toPoolName(args)
    return { domain: pool, sub: subdomain }
  },
  show: (session, result, { domain, sub }) =>
    session.output.report(result, result.tokens, {
      key: 'tokens',
      columns: tokenColumns,
      toName: ({ id }) => id,
      empty: `No tokens of ${sub}.${domain}.`,
    }),
})

const deleteToken = oneCall({
  name: 'delete',
  summary: 'Delete a token of a name',
  description: 'It ends at once. The records that were set with it stay with their owner.',
  arguments: [{ name: 'ID', description: 'the id of the token' }, ...nameArguments],
  flags: [
    { flags: '--records', description: 'delete the records of its owner too' },
    tokenFileFlag,
    deploymentFlag,
    yesFlag,
  ],
  examples: ['records tokens delete 3f0c7a52-7c4e-4a6b-9a55-0f0e9d3a1b2c acme.pool.example --yes'],
  operation: 'deleteToken',
  params: async ({ args: [id, ...name], flags }, session) => {
    const poolName = toPoolName(name)
    const proof = await toProof(session, poolName, flags)
    return { ...toNamePath(poolName), ...proof, id: String(id), records: flags.records === true }
  },
  confirm: ({ id, domain, subdomain }) => ({
    question: `Delete the token ${id} of ${subdomain}.${domain}?`,
    expected: `${subdomain}.${domain}`,
  }),
  show: (session, _, { id }) => session.output.done({}, `The token ${id} is deleted.`, id),
})

export const recordCommands: GroupSpec = {
  name: 'records',
  summary: 'Records that tenants set below their names, and the tokens for their tools',
  commands: [
    list,
    set,
    remove,
    { name: 'tokens', summary: 'Tokens of a name: mint, list, delete', commands: [mint, listTokens, deleteToken] },
    webhookCommand,
  ],
}

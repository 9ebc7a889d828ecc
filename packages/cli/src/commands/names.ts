import { ProblemError } from '@pool/client'
import {
  type Allocation,
  formatTarget,
  type HistoryEntry,
  type ListedName,
  type NameDetails,
  nameStates,
  type Target,
} from '@pool/contract'
import type { ArgumentSpec, Arguments, CommandSpec, FlagSpec, Flags, GroupSpec, Input } from '../command.ts'
import { CommandError, EXIT, UsageError } from '../exit-codes.ts'
import { hadNoEffect } from '../failures.ts'
import { writePrivateFile } from '../private-file.ts'
import type { Session } from '../session.ts'
import type { Column, Field } from '../table.ts'
import { toStateColour } from '../text.ts'
import { readTokenFile } from '../token-store.ts'
import { type PoolName, parseDuration, parsePool, parsePoolName, parseTarget, toFqdn } from '../values.ts'
import { dryRunFlag, toText, yesFlag } from './flags.ts'
import { listCall, oneCall } from './one-call.ts'
import { diffView, toChangeRow } from './record-changes.ts'

export const nameArguments: readonly ArgumentSpec[] = [
  { name: 'NAME', description: 'the subdomain, or with its pool: acme.pool.example' },
  { name: '[POOL]', description: 'the pool, if NAME is only the subdomain', suggest: 'pools' },
]
const poolArgument: ArgumentSpec = { name: 'POOL', description: 'the pool', suggest: 'pools' }
export const tokenFileFlag: FlagSpec = {
  flags: '--token-file <file>',
  description: 'a file with the reservation token; by default, poolctl keeps it',
  suggest: 'files',
}
export const deploymentFlag: FlagSpec = {
  flags: '--deployment <id>',
  description: 'the deployment that holds the name: the token that poolctl keeps for it stands for that of the name',
}
const targetFlags: readonly FlagSpec[] = [
  { flags: '--address <ip>', description: 'the IPv4 address of the load balancer' },
  { flags: '--ipv6 <ip>', description: 'its IPv6 address, beside or instead of the IPv4 address' },
  { flags: '--console-address <ip>', description: 'another IPv4 address for the names console and api' },
  { flags: '--hostname <name>', description: 'the host name of the load balancer, instead of addresses' },
  {
    flags: '--nameserver <name>',
    description: 'a name server to which the name is delegated; name two to eight of them',
    isRepeatable: true,
  },
  {
    flags: '--ds <record>',
    description: 'with --nameserver: a DS record, as "keyTag algorithm digestType digest"',
    isRepeatable: true,
  },
]
const waitTimeoutFlag: FlagSpec = {
  flags: '--wait-timeout <duration>',
  description: 'how long to wait: 5m by default; --timeout limits each request only',
}
const waitFlags: readonly FlagSpec[] = [
  { flags: '-w, --wait', description: 'wait until the records are published' },
  waitTimeoutFlag,
]
const waitExitCodes = [
  '3  with --wait: a record that the service does not manage is in the way (operator listener)',
  '4  with --wait: the records were not published within --wait-timeout',
]
const DEFAULT_WAIT = '5m'
const WAIT_LIMITS = { min: 1_000, max: 86_400_000 } as const
const DNS_STATUSES = ['pending', 'published', 'failing'] as const

export const toPoolName = (args: Arguments): PoolName => parsePoolName(String(args[0]), toText(args[1]))

/** The fields that identify the name of an operation. */
export const toNamePath = ({ subdomain, pool }: PoolName) => ({ domain: pool, subdomain })

const toSubject = ({ subdomain, pool }: PoolName) => ({ kind: 'name', pool, subdomain }) as const

/** The token of a name, from the file of the flag or from the store. */
const findToken = async (session: Session, name: PoolName, flags: Flags): Promise<string | undefined> => {
  const file = toText(flags.tokenFile)
  return file === undefined ? (await session.tokens()).read(toSubject(name)) : readTokenFile(file)
}

const findDeploymentToken = async (session: Session, id: string | undefined): Promise<string | undefined> => {
  if (id === undefined) return undefined
  const token = await (await session.tokens()).read({ kind: 'deployment', id })
  if (token !== undefined) return token
  throw new UsageError(
    `the token of the deployment ${id} is not stored on this machine; have an operator release the name.`,
  )
}

/** What proves that the caller may act for the holder of a name. An operator needs nothing. */
export const toProof = async (session: Session, name: PoolName, flags: Flags) => ({
  reservationToken: await findToken(session, name, flags),
  deploymentToken: await findDeploymentToken(session, toText(flags.deployment)),
})

const requireToken = async (session: Session, name: PoolName, flags: Flags): Promise<string> => {
  const token = await findToken(session, name, flags)
  if (token !== undefined) return token
  throw new UsageError(`the token of ${toFqdn(name)} is not stored on this machine; name its file with --token-file.`)
}

const toAllocationFields = (allocation: Allocation): readonly Field[] => {
  const { subdomain, poolDomain, state, createdBy, reservedAt } = allocation
  const common: readonly Field[] = [
    ['name', `${subdomain}.${poolDomain}`],
    ['state', state, toStateColour(state)],
  ]
  const origin: readonly Field[] = [
    ['created by', createdBy],
    ['reserved at', reservedAt],
  ]
  if (allocation.state === 'reserved') return [...common, ['expires at', allocation.expiresAt], ...origin]
  const { dns, committedAt } = allocation
  return [
    ...common,
    ['address', formatTarget(allocation)],
    ['dns', dns.status, toStateColour(dns.status)],
    ['dns detail', dns.detail],
    ['committed at', committedAt],
    ...origin,
  ]
}

const showAllocation = (session: Session, allocation: Allocation): Promise<void> =>
  session.output.item(allocation, {
    fields: toAllocationFields(allocation),
    name: `${allocation.subdomain}.${allocation.poolDomain}`,
  })

/** Waits on after every failure that can pass. A conflict does not: a person has to delete the other record. */
const waitUntilPublished = async (session: Session, name: PoolName, flags: Flags) => {
  const text = toText(flags.waitTimeout) ?? DEFAULT_WAIT
  const deadlineMs = parseDuration(text, '--wait-timeout', WAIT_LIMITS)
  const api = await session.api()
  const { progress, host } = session
  const fqdn = toFqdn(name)
  progress.update(`waiting for the records of ${fqdn}`)
  const conflicting = new AbortController()
  const findConflict = async (): Promise<void> => {
    const { conflict } = await api.compareNameRecords(toNamePath(name), session.reading)
    if (conflict === undefined) return
    const text = `${fqdn} is not published: ${conflict} Then run: poolctl names wait ${fqdn}`
    conflicting.abort(new CommandError(text, EXIT.rejected))
  }
  let compared: string | undefined
  try {
    return await api.waitUntilPublished(toNamePath(name), {
      deadlineMs,
      signal: AbortSignal.any([host.interrupted, conflicting.signal]),
      onPending({ status, detail }) {
        progress.update(`waiting for the records of ${fqdn}: ${status}${detail ? `, ${detail}` : ''}`)
        if (status !== 'failing' || detail === compared) return
        compared = detail
        // Only the operator listener can, and not while the provider is unavailable.
        findConflict().catch(() => {})
      },
    })
  } finally {
    progress.stop()
  }
}

/** Shows an active name, with its records if the user waits for them. */
const showActive = async (session: Session, allocation: Allocation & { warning?: string }, { args, flags }: Input) => {
  const name = toPoolName(args)
  const isPending = allocation.warning !== undefined
  if (isPending && flags.wait === true) return showAllocation(session, await waitUntilPublished(session, name, flags))
  await showAllocation(session, allocation)
  if (isPending) {
    session.output.note(`The records are not published yet. Wait for them with: poolctl names wait ${toFqdn(name)}`)
  }
}

const checkWait = (flags: Flags): void => {
  const text = toText(flags.waitTimeout)
  if (text === undefined) return
  if (flags.wait !== true) throw new UsageError('--wait-timeout needs --wait.')
  parseDuration(text, '--wait-timeout', WAIT_LIMITS)
}

const check = oneCall({
  name: 'check',
  summary: 'Check whether a name is free',
  arguments: nameArguments,
  examples: ['names check acme pool.example', 'names check acme.pool.example && echo free'],
  operation: 'checkName',
  exitCodes: ['0  the name is free', '1  the name is not free'],
  params: ({ args }) => {
    const { pool, subdomain } = toPoolName(args)
    return { domain: pool, sub: subdomain }
  },
  show: async (session, result, { domain, sub }) => {
    const { available, reason, detail, availableAt } = result
    const name = `${sub}.${domain}`
    await session.output.item(result, {
      name,
      fields: [
        ['name', name],
        ['free', available ? 'yes' : 'no', available ? 'green' : 'yellow'],
        ['reason', reason],
        ['detail', detail],
        ['available at', availableAt],
      ],
    })
    return available ? EXIT.done : EXIT.negative
  },
})

/** False if it cannot be read: it only decides about a remark. */
const isCoolingOff = async (session: Session, { pool, subdomain }: PoolName): Promise<boolean> => {
  const options = { ...session.reading, deadlineMs: 5_000 }
  const state = await (await session.api()).checkName({ domain: pool, sub: subdomain }, options).catch(() => undefined)
  session.host.interrupted.throwIfAborted()
  return state?.reason === 'cooling-off'
}

const reserve: CommandSpec = {
  name: 'reserve',
  summary: 'Reserve a free name for a limited time',
  description:
    'The reservation token is not printed. poolctl keeps it in a file that only you can read, for commit, renew, update and release; --token-file writes it to a file of your choice instead. If the command is interrupted, repeat it: it gets the result of the first request.',
  arguments: nameArguments,
  flags: [
    { flags: '--created-by <text>', description: 'who or what reserves the name' },
    { ...tokenFileFlag, description: 'write the reservation token to this file instead' },
  ],
  examples: [
    'names reserve acme pool.example',
    'names reserve acme.pool.example --created-by ci-1234 --token-file acme.token',
  ],
  operations: ['reserveName', 'checkName'],
  async run(session, { args, flags }) {
    const name = toPoolName(args)
    const createdBy = toText(flags.createdBy)
    const file = toText(flags.tokenFile)
    const api = await session.api()
    const tokens = await session.tokens()
    // After a release, the former token takes the name back during its cool-off.
    const former = await tokens.read(toSubject(name))
    const isTakenBack = former !== undefined && (await isCoolingOff(session, name))
    const request = { ...toNamePath(name), createdBy }
    const reservation = await tokens.once(
      toSubject(name),
      { ...request, isRetaken: former !== undefined },
      {
        send: idempotencyKey =>
          session.write(options =>
            api.reserveName({ ...request, reservationToken: former }, { ...options, idempotencyKey }),
          ),
        toToken: result => (file === undefined ? result.reservationToken : undefined),
        isFinal: hadNoEffect,
      },
    )
    if (file !== undefined) await writePrivateFile(file, `${reservation.reservationToken}\n`)
    await showAllocation(session, reservation)
    if (isTakenBack) session.output.note('It was in its cool-off: your former token took it back.')
    const token = file === undefined ? '' : ` --token-file ${file}`
    session.output.note(`Commit it with: poolctl names commit ${toFqdn(name)} --address IP${token}`)
  },
}

const commit = oneCall({
  name: 'commit',
  summary: 'Activate a reserved name and publish its records',
  arguments: nameArguments,
  flags: [...targetFlags, tokenFileFlag, ...waitFlags],
  examples: [
    'names commit acme pool.example --address 203.0.113.10',
    'names commit acme.pool.example --address 203.0.113.10 --ipv6 2001:db8::10 --wait',
    'names commit acme.pool.example --hostname lb.cloud.example',
  ],
  operation: 'commitName',
  exitCodes: waitExitCodes,
  params: async ({ args, flags }, session) => {
    const name = toPoolName(args)
    const target = parseTarget(flags, true) as Target
    checkWait(flags)
    const reservationToken = await requireToken(session, name, flags)
    return { ...toNamePath(name), reservationToken, ...target, sovereignFQDN: toFqdn(name) }
  },
  show: (session, allocation, _, input) => showActive(session, allocation, input),
})

const renew = oneCall({
  name: 'renew',
  summary: 'Extend a reservation by its full lifetime from now',
  arguments: nameArguments,
  flags: [tokenFileFlag],
  examples: ['names renew acme pool.example'],
  operation: 'renewReservation',
  params: async ({ args, flags }, session) => {
    const name = toPoolName(args)
    return { ...toNamePath(name), reservationToken: await requireToken(session, name, flags) }
  },
  show: showAllocation,
})

const update = oneCall({
  name: 'update',
  summary: 'Change the target of an active name',
  description:
    'An address that is not named stays, and "none" removes one; another form replaces the target. The records change in one write where the provider can. On the operator listener no token is needed.',
  arguments: nameArguments,
  flags: [...targetFlags, tokenFileFlag, dryRunFlag, ...waitFlags],
  examples: [
    'names update acme pool.example --address 203.0.113.20 --wait',
    'names update acme.pool.example --address 203.0.113.20 --dry-run',
  ],
  operation: 'updateName',
  exitCodes: waitExitCodes,
  params: async ({ args, flags }, session) => {
    const name = toPoolName(args)
    const target = parseTarget(flags, false)
    checkWait(flags)
    const reservationToken = await findToken(session, name, flags)
    return { ...toNamePath(name), ...target, reservationToken, dryRun: flags.dryRun === true }
  },
  show: (session, allocation, _, input) => showActive(session, allocation, input),
})

const release = oneCall({
  name: 'release',
  summary: 'Release a name and delete its records',
  description:
    'Every record at and below the name is deleted, whichever client wrote it. Without a token, any name is released, unless the installation has PDM_RELEASE_TOKEN=required.',
  arguments: nameArguments,
  flags: [tokenFileFlag, deploymentFlag, dryRunFlag, yesFlag],
  examples: ['names release acme pool.example --dry-run', 'names release acme.pool.example --yes'],
  operation: 'releaseName',
  params: async ({ args, flags }, session) => {
    const name = toPoolName(args)
    return {
      ...toNamePath(name),
      ...(await toProof(session, name, flags)),
      dryRun: flags.dryRun === true,
    }
  },
  confirm: ({ domain, subdomain }) => ({
    question: `Release ${subdomain}.${domain} and delete its records?`,
    expected: `${subdomain}.${domain}`,
  }),
  show: async (session, result, { domain, subdomain }) => {
    const fqdn = `${subdomain}.${domain}`
    await session.output.done(result, `${fqdn} is released.`, fqdn)
    if ('warning' in result) session.output.note('Some records are not deleted yet. No further request is needed.')
  },
})

const get = oneCall({
  name: 'get',
  summary: 'Show one name with the status of its records',
  arguments: nameArguments,
  examples: ['names get acme pool.example', 'names get acme.pool.example -o json'],
  operation: 'getAllocation',
  params: ({ args }) => toNamePath(toPoolName(args)),
  show: showAllocation,
})

type Shown = Target & Pick<ListedName, 'state' | 'dns' | 'committedAt' | 'reservedAt' | 'createdBy'>

/** Of a list of names, after the name. */
const nameColumns: readonly Column<Shown>[] = [
  { header: 'STATE', value: ({ state }) => state, colour: ({ state }) => toStateColour(state) },
  { header: 'ADDRESS', value: name => formatTarget(name) || undefined },
  { header: 'DNS', value: ({ dns }) => dns?.status, colour: ({ dns }) => dns && toStateColour(dns.status) },
  { header: 'SINCE', value: ({ committedAt, reservedAt }) => committedAt ?? reservedAt },
  { header: 'CREATED BY', value: ({ createdBy }) => createdBy },
]

const list = listCall({
  name: 'list',
  summary: 'List the names of a pool',
  arguments: [poolArgument],
  flags: [{ flags: '--state <state>', description: 'only names in this state', choices: ['reserved', 'active'] }],
  examples: ['names list pool.example --state active', 'names list pool.example -o name'],
  operation: 'listAllocations',
  query: ({ args, flags }) => ({
    domain: parsePool(String(args[0])),
    state: flags.state as 'reserved' | 'active' | undefined,
  }),
  items: (api, query, options) => api.allocations(query, options),
  view: ({ domain }) => ({
    key: 'allocations',
    columns: [{ header: 'NAME', value: ({ subdomain }) => subdomain, isFirm: true }, ...nameColumns],
    toName: ({ subdomain, poolDomain }) => `${subdomain}.${poolDomain}`,
    empty: `No names in ${domain}.`,
  }),
})

const search = listCall({
  name: 'search',
  summary: 'Search the names of all pools that are not free',
  description:
    'TEXT is the beginning of the subdomain, or the subdomain with a dot and the beginning of the pool: acme.pool.ex. For operators.',
  arguments: [{ name: '[TEXT]', description: 'how the name begins; every name by default' }],
  flags: [
    { flags: '--pool <pool>', description: 'only names of this pool', suggest: 'pools' },
    { flags: '--state <state>', description: 'only names in this state', choices: [...nameStates] },
    { flags: '--dns <status>', description: 'only names whose records have this status', choices: [...DNS_STATUSES] },
    { flags: '--address <ip>', description: 'only names with this address, or with these first numbers of it' },
    { flags: '--created-by <text>', description: 'only names whose creator begins with this text' },
  ],
  examples: ['names search acm', 'names search --dns failing --pool pool.example', 'names search --address 203.0.113'],
  operation: 'searchNames',
  query: ({ args, flags }) => {
    const pool = toText(flags.pool)
    return {
      q: toText(args[0]),
      pool: pool === undefined ? undefined : parsePool(pool),
      state: flags.state as (typeof nameStates)[number] | undefined,
      dns: flags.dns as (typeof DNS_STATUSES)[number] | undefined,
      address: toText(flags.address),
      createdBy: toText(flags.createdBy),
    }
  },
  items: (api, query, options) => api.names(query, options),
  view: () => ({
    key: 'names',
    columns: [
      { header: 'NAME', value: ({ subdomain, poolDomain }) => `${subdomain}.${poolDomain}`, isFirm: true },
      ...nameColumns,
    ],
    toName: ({ subdomain, poolDomain }) => `${subdomain}.${poolDomain}`,
    empty: 'No name matches.',
  }),
})

const formatRecord = ({ name, type, ttl, data }: NameDetails['desired'][number]): string =>
  `${name} ${ttl} ${type} ${data.join(', ')}`

const describe = oneCall({
  name: 'describe',
  summary: 'Show a name with its desired records and its deployment, even if it is free',
  description: 'For operators. Compare its records with those of the zone: poolctl names diff.',
  arguments: nameArguments,
  examples: ['names describe acme pool.example', 'names describe acme.pool.example -o json'],
  operation: 'describeName',
  params: ({ args }) => toNamePath(toPoolName(args)),
  show: async (session, details) => {
    const { fqdn, state, dns, nextAttemptAt, availableAt, expiresAt, renewalCount, deployment } = details
    await session.output.item(details, {
      name: fqdn,
      fields: [
        ['name', fqdn],
        ['state', state, toStateColour(state)],
        ['expires at', expiresAt],
        ['renewals', renewalCount],
        ['available at', availableAt],
        ['address', formatTarget(details) || undefined],
        ['dns', dns?.status, dns && toStateColour(dns.status)],
        ['dns detail', dns?.detail],
        ['next attempt at', nextAttemptAt],
        ...details.desired.map((set): Field => ['record', formatRecord(set)]),
        ['deployment', deployment && `${deployment.id} (${deployment.status})`],
        ['committed at', details.committedAt],
        ['created by', details.createdBy],
        ['reserved at', details.reservedAt],
      ],
    })
  },
})

const diff = oneCall({
  name: 'diff',
  summary: 'Compare the records of a name with its desired ones; change nothing',
  description: 'For operators. Lists what the service would write now.',
  arguments: nameArguments,
  examples: ['names diff acme pool.example', 'names diff acme.pool.example -o json'],
  operation: 'compareNameRecords',
  exitCodes: ['0  the name has its desired records', '1  its records differ, or are not written'],
  params: ({ args }) => toNamePath(toPoolName(args)),
  show: async (session, result, { domain, subdomain }) => {
    const { changes, conflict } = result
    const empty = conflict === undefined ? 'the name has its desired records.' : 'nothing is written.'
    await session.output.report(result, changes.map(toChangeRow), diffView(`${subdomain}.${domain}`, empty))
    if (conflict !== undefined) session.output.note(`The records are not written: ${conflict}`)
    return changes.length === 0 && conflict === undefined ? EXIT.done : EXIT.negative
  },
})

const historyColumns: readonly Column<HistoryEntry>[] = [
  { header: 'AT', value: ({ at }) => at },
  { header: 'NAME', value: ({ subdomain }) => subdomain, isFirm: true },
  { header: 'EVENT', value: ({ event }) => event, colour: ({ event }) => (event === 'failing' ? 'red' : undefined) },
  { header: 'ACTOR', value: ({ actor }) => actor },
  { header: 'CREATED BY', value: ({ createdBy }) => createdBy },
  { header: 'DETAIL', value: ({ detail }) => detail },
]

const history = listCall({
  name: 'history',
  summary: 'List what happened to the names of a pool, or to one name; newest first',
  arguments: [
    { name: 'NAME', description: 'such as acme.pool.example, or acme with POOL; or a pool, for all its names' },
    { name: '[POOL]', description: 'the pool, if NAME is one label', suggest: 'pools' },
  ],
  examples: [
    'names history acme.pool.example',
    'names history acme pool.example -o json',
    'names history pool.example',
  ],
  operation: 'readHistory',
  query: ({ args: [first, second] }) => {
    if (typeof second !== 'string') return { domain: parsePool(String(first)) }
    // Other lists begin with the pool, so that order is accepted too.
    const [name, pool] = second.includes('.') ? [String(first), second] : [second, String(first)]
    const { subdomain, pool: domain } = parsePoolName(name, pool)
    return { domain, sub: subdomain }
  },
  items: async function* (api, query, options) {
    try {
      yield* api.historyEntries(query, options)
    } catch (error) {
      const isName = error instanceof ProblemError && error.code === 'unsupported-pool' && query.sub === undefined
      if (!isName) throw error
      const { subdomain, pool } = parsePoolName(query.domain, undefined)
      yield* api.historyEntries({ domain: pool, sub: subdomain }, options)
    }
  },
  view: ({ domain }) => ({
    key: 'entries',
    columns: historyColumns,
    toName: ({ subdomain, poolDomain }) => `${subdomain}.${poolDomain}`,
    empty: `No history in ${domain}.`,
  }),
})

const wait: CommandSpec = {
  name: 'wait',
  summary: 'Wait until the records of an active name are published',
  arguments: nameArguments,
  flags: [waitTimeoutFlag],
  examples: ['names wait acme pool.example', 'names wait acme.pool.example --wait-timeout 1m'],
  operations: ['getAllocation'],
  exitCodes: waitExitCodes.map(text => text.replace('with --wait: ', '')),
  async run(session, { args, flags }) {
    const name = toPoolName(args)
    await showAllocation(session, await waitUntilPublished(session, name, flags))
  },
}

const reserved = oneCall({
  name: 'reserved',
  summary: 'List the labels that no tenant can reserve',
  examples: ['names reserved'],
  operation: 'listReservedLabels',
  show: (session, result) =>
    session.output.report(
      result,
      result.reserved.map(label => ({ label })),
      {
        key: 'reserved',
        columns: [{ header: 'LABEL', value: ({ label }) => label }],
        toName: ({ label }) => label,
        empty: 'No labels are reserved.',
      },
    ),
})

export const nameCommands: GroupSpec = {
  name: 'names',
  summary: 'Names of the pools: reserve, commit, release',
  commands: [
    check,
    reserve,
    commit,
    renew,
    update,
    release,
    get,
    list,
    history,
    wait,
    search,
    describe,
    diff,
    reserved,
  ],
}

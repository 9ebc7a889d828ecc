import type { FormerRecordsResponse, Orphan, ZoneDifference, ZoneStatus } from '@pool/contract'
import type { ArgumentSpec, CommandSpec, GroupSpec } from '../command.ts'
import { EXIT } from '../exit-codes.ts'
import type { Session } from '../session.ts'
import type { Column } from '../table.ts'
import { parsePool, parsePoolName, parseSubdomains } from '../values.ts'
import { dryRunFlag, yesFlag } from './flags.ts'
import { oneCall } from './one-call.ts'
import { type DiffRow, diffView, noteMore, showNamePlan, toChangeRow } from './record-changes.ts'

const poolArgument: ArgumentSpec = { name: 'POOL', description: 'the pool whose zone it is', suggest: 'pools' }

const PENDING = 'Some names do not have their records yet. The service continues; no further request is needed.'

/** Runs a call that waits for a DNS provider. */
const withProgress = async <Result>(session: Session, text: string, call: () => Promise<Result>): Promise<Result> => {
  session.progress.update(text)
  try {
    return await call()
  } finally {
    session.progress.stop()
  }
}

/** Compares a zone, and repairs it unless it is a dry run. */
const converge = async (session: Session, pool: string, dryRun: boolean) => {
  const api = await session.api()
  const call = () =>
    dryRun
      ? api.convergeZone({ domain: pool, dryRun }, session.reading)
      : session.write(options => api.convergeZone({ domain: pool, dryRun }, options))
  const result = await withProgress(session, `comparing the zone ${pool}`, call)
  const { changes, conflicts, orphans } = result
  const rows: readonly DiffRow[] = [
    ...changes.map(toChangeRow),
    ...conflicts.map(({ subdomain, detail }) => ({ action: 'conflict', name: `${subdomain}.${pool}`, detail })),
    ...orphans.map(({ subdomain, loadBalancerIP }) => ({
      action: 'orphan',
      name: `${subdomain}.${pool}`,
      detail: `${loadBalancerIP}, records that no allocation explains`,
    })),
  ]
  await session.output.report(result, rows, diffView(pool, 'the zone has its desired records.'))
  noteMore(session, changes.length, result.changeCount, 'changes')
  noteMore(session, conflicts.length, result.conflictCount, 'conflicts')
  noteMore(session, orphans.length, result.orphanCount, 'orphans')
  if (result.stopped) {
    session.output.note(
      `Nothing is written to this zone (${result.stopped}). Continue with: poolctl zones resume ${pool}`,
    )
  }
  if ('warning' in result) session.output.note(PENDING)
  return result
}

const diff: CommandSpec = {
  name: 'diff',
  summary: 'Compare a zone with its desired records; change nothing',
  arguments: [poolArgument],
  examples: ['zones diff pool.example', 'zones diff pool.example -o json'],
  operations: ['convergeZone'],
  exitCodes: ['0  the zone has its desired records', '1  the zone differs, or nothing is written to it'],
  async run(session, { args }) {
    const result = await converge(session, parsePool(String(args[0])), true)
    const isSame = result.changeCount + result.conflictCount + result.orphanCount === 0 && !result.stopped
    return isSame ? EXIT.done : EXIT.negative
  },
}

const convergeCommand: CommandSpec = {
  name: 'converge',
  summary: 'Compare a zone with its desired records and repair it',
  arguments: [poolArgument],
  flags: [dryRunFlag],
  examples: ['zones converge pool.example', 'zones converge pool.example --dry-run'],
  operations: ['convergeZone'],
  async run(session, { args, flags }) {
    await converge(session, parsePool(String(args[0])), flags.dryRun === true)
    return undefined
  },
}

const republish: CommandSpec = {
  name: 'republish',
  summary: 'Bring the records of the active names to the current template',
  arguments: [poolArgument],
  flags: [dryRunFlag],
  examples: ['zones republish pool.example --dry-run', 'zones republish pool.example'],
  operations: ['republishZone'],
  async run(session, { args, flags }) {
    const pool = parsePool(String(args[0]))
    const dryRun = flags.dryRun === true
    const api = await session.api()
    const call = () =>
      dryRun
        ? api.republishZone({ domain: pool, dryRun }, session.reading)
        : session.write(options => api.republishZone({ domain: pool, dryRun }, options))
    const result = await withProgress(session, `republishing the zone ${pool}`, call)
    await session.output.report(
      result,
      result.changes.map(toChangeRow),
      diffView(pool, 'every name has the current template.'),
    )
    noteMore(session, result.changes.length, result.changeCount, `changes of ${result.nameCount} names`)
    if ('warning' in result) session.output.note(PENDING)
    return undefined
  },
}

const toDifferenceRow =
  (pool: string) =>
  ({ subdomain, action, databaseAddress, zoneAddress }: ZoneDifference) => ({
    action,
    name: `${subdomain}.${pool}`,
    detail: `database ${databaseAddress ?? 'none'}, zone ${zoneAddress ?? 'none'}`,
  })

const resume: CommandSpec = {
  name: 'resume',
  summary: 'Start the writes to a stopped zone again',
  description:
    'A zone is stopped if the database is older than its last write, if another database wrote it, or after an import. --trust says which side is right where they differ. List the differences with --dry-run first.',
  arguments: [poolArgument],
  flags: [
    {
      flags: '--trust <side>',
      description: 'database: the zone gets its records; zone: the database gets its names',
      choices: ['database', 'zone'],
      isRequired: true,
    },
    dryRunFlag,
    yesFlag,
  ],
  examples: ['zones resume pool.example --trust zone --dry-run', 'zones resume pool.example --trust zone'],
  operations: ['resumeZone'],
  async run(session, { args, flags }) {
    const pool = parsePool(String(args[0]))
    const trust = flags.trust as 'database' | 'zone'
    const dryRun = flags.dryRun === true
    const api = await session.api()
    const request = { domain: pool, trust, dryRun }
    if (!dryRun) {
      await session.confirm(`Write the zone ${pool} again, with the ${trust} as the truth?`, pool, flags.yes === true)
    }
    const call = () =>
      dryRun ? api.resumeZone(request, session.reading) : session.write(options => api.resumeZone(request, options))
    const result = await withProgress(session, `comparing the zone ${pool}`, call)
    const rows = result.differences.map(toDifferenceRow(pool))
    await session.output.report(result, rows, { ...diffView(pool, 'no differences.'), key: 'differences' })
    noteMore(session, rows.length, result.differenceCount, 'differences')
    if (!dryRun) session.output.note(`The zone ${pool} is written again. It was stopped because: ${result.cause}.`)
    if ('warning' in result) session.output.note(PENDING)
    return undefined
  },
}

const orphanColumns: readonly Column<Orphan>[] = [
  { header: 'NAME', value: ({ subdomain }) => subdomain },
  { header: 'ADDRESS', value: ({ loadBalancerIP }) => loadBalancerIP },
  { header: 'RECORDS', value: ({ records }) => records.length },
  { header: 'OTHER RECORDS', value: ({ otherRecordCount }) => otherRecordCount },
]

const namesArgument: ArgumentSpec = { name: '[NAMES...]', description: 'only these names; every orphan by default' }

interface OrphansOptions {
  readonly pool: string
  readonly names: readonly string[]
  readonly dryRun: boolean
  readonly action: 'adopt' | 'remove'
}

const changeOrphans = async (session: Session, { pool, names, dryRun, action }: OrphansOptions): Promise<void> => {
  const api = await session.api()
  const request = { domain: pool, dryRun, ...(names.length === 0 ? {} : { subdomains: [...names] }) }
  const send = (options: Session['reading']) =>
    action === 'adopt' ? api.adoptOrphans(request, options) : api.removeOrphans(request, options)
  const result = await withProgress(session, `reading the zone ${pool}`, () =>
    dryRun ? send(session.reading) : session.write(send),
  )
  await session.output.report(result, result.orphans, {
    key: 'orphans',
    columns: orphanColumns,
    toName: ({ subdomain }) => `${subdomain}.${pool}`,
    empty: `${pool}: no orphans.`,
  })
  noteMore(session, result.orphans.length, result.orphanCount, 'orphans')
  if (!dryRun) session.output.note(`${result.changedCount} ${action === 'adopt' ? 'adopted' : 'removed'}.`)
  if ('warning' in result) session.output.note(PENDING)
}

const listOrphans: CommandSpec = {
  name: 'list',
  summary: 'List the names whose records no allocation explains',
  arguments: [poolArgument],
  examples: ['zones orphans list pool.example'],
  operations: ['adoptOrphans'],
  async run(session, { args }) {
    await changeOrphans(session, { pool: parsePool(String(args[0])), names: [], dryRun: true, action: 'adopt' })
    return undefined
  },
}

const createOrphansCommand = (action: 'adopt' | 'remove', summary: string, operation: string): CommandSpec => ({
  name: action,
  summary,
  arguments: [poolArgument, namesArgument],
  flags: [dryRunFlag, yesFlag],
  examples: [`zones orphans ${action} pool.example --dry-run`, `zones orphans ${action} pool.example acme globex`],
  operations: [operation],
  async run(session, { args, flags }) {
    const pool = parsePool(String(args[0]))
    const names = parseSubdomains(Array.isArray(args[1]) ? args[1] : [])
    const dryRun = flags.dryRun === true
    if (!dryRun) {
      const which = names.length === 0 ? 'every orphan' : names.join(', ')
      const verb = action === 'adopt' ? 'Adopt' : 'Delete the records of'
      await session.confirm(`${verb} ${which} in ${pool}?`, pool, flags.yes === true)
    }
    await changeOrphans(session, { pool, names, dryRun, action })
    return undefined
  },
})

type FormerRecord = FormerRecordsResponse['records'][number]

const formerColumns: readonly Column<FormerRecord>[] = [
  { header: 'PROVIDER', value: ({ provider }) => provider },
  { header: 'NAME', value: ({ name }) => name },
  { header: 'TYPE', value: ({ type }) => type },
  { header: 'DATA', value: ({ data }) => data?.join(', ') },
]

const formerRecords: CommandSpec = {
  name: 'former-records',
  summary: 'List the records that an earlier DNS provider has from before a move',
  arguments: [poolArgument],
  examples: ['zones former-records pool.example'],
  operations: ['listFormerRecords'],
  async run(session, { args }) {
    const domain = parsePool(String(args[0]))
    const api = await session.api()
    await session.output.list(api.formerRecords({ domain }, session.reading), {
      key: 'records',
      columns: formerColumns,
      toName: ({ name }) => name,
      empty: `${domain}: no records at an earlier provider.`,
    })
    return undefined
  },
}

const liftCoolOff: CommandSpec = {
  name: 'lift',
  summary: 'Make a name that is in its cool-off free',
  description: 'DNS caches, certificates and bookmarks can still lead to its former client.',
  arguments: [
    { name: 'NAME', description: 'the subdomain, or with its pool: acme.pool.example' },
    { name: '[POOL]', description: 'the pool, if NAME is only the subdomain', suggest: 'pools' },
  ],
  flags: [dryRunFlag, yesFlag],
  examples: ['zones cool-off lift acme pool.example', 'zones cool-off lift acme.pool.example --dry-run'],
  operations: ['liftCoolOff'],
  async run(session, { args, flags }) {
    const { subdomain, pool } = parsePoolName(String(args[0]), typeof args[1] === 'string' ? args[1] : undefined)
    const api = await session.api()
    if (flags.dryRun === true) {
      await showNamePlan(session, await api.liftCoolOff({ domain: pool, subdomain, dryRun: true }, session.reading))
      return undefined
    }
    const fqdn = `${subdomain}.${pool}`
    await session.confirm(`Make ${fqdn} free for any client?`, fqdn, flags.yes === true)
    await session.write(options => api.liftCoolOff({ domain: pool, subdomain }, options))
    await session.output.done({ poolDomain: pool, subdomain, lifted: true }, `Any client can reserve ${fqdn}.`, fqdn)
    return undefined
  },
}

const zoneColumns: readonly Column<ZoneStatus>[] = [
  { header: 'ZONE', value: ({ zone }) => zone, isFirm: true },
  { header: 'STATUS', value: ({ status }) => status },
  { header: 'PENDING', value: ({ pendingNames }) => pendingNames },
  {
    header: 'FAILING',
    value: ({ failing }) => failing.map(({ cause, names }) => `${names} ${cause}`).join(', '),
    colour: () => 'red',
  },
  { header: 'STOPPED', value: ({ stopped }) => stopped, colour: () => 'red' },
  { header: 'PUBLISHED', value: ({ syncedAt }) => syncedAt },
  { header: 'DRIFT CHECK', value: ({ driftCheckedAt }) => driftCheckedAt },
]

const list = oneCall({
  name: 'list',
  summary: 'List the zones with their pending and failing names',
  examples: ['zones list', 'zones list -o json'],
  operation: 'listZones',
  show: async (session, result) => {
    await session.output.report(result, result.zones, {
      key: 'zones',
      columns: zoneColumns,
      toName: ({ zone }) => zone,
      empty: 'No zones.',
    })
    const { kind, writesZones, circuitOpen } = result.provider
    if (!writesZones) session.output.note('The service writes no records: PDM_DNS_WRITES is off.')
    if (circuitOpen) session.output.note(`The service has suspended its calls to ${kind} after failures.`)
  },
})

export const zoneCommands: GroupSpec = {
  name: 'zones',
  summary: 'DNS zones of the pools: compare, repair, resume',
  commands: [
    list,
    diff,
    convergeCommand,
    republish,
    resume,
    {
      name: 'orphans',
      summary: 'Names whose records no allocation explains',
      commands: [
        listOrphans,
        createOrphansCommand('adopt', 'Make allocations of orphans, with the addresses of the zone', 'adoptOrphans'),
        createOrphansCommand('remove', 'Delete every record at and below orphans', 'removeOrphans'),
      ],
    },
    {
      name: 'cool-off',
      summary: 'The time after a release in which only the former client can reserve a name',
      commands: [liftCoolOff],
    },
    formerRecords,
  ],
}

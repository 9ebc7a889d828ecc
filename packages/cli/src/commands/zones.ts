import {
  type ConvergeResponse,
  type FormerRecordsResponse,
  formatTarget,
  type Orphan,
  type OrphansResponse,
  type ZoneDifference,
  type ZoneStatus,
} from '@pool/contract'
import type { ArgumentSpec, CommandSpec, GroupSpec, Input } from '../command.ts'
import { EXIT } from '../exit-codes.ts'
import type { Session } from '../session.ts'
import type { Column } from '../table.ts'
import { parsePool, parsePoolName, parseSubdomains } from '../values.ts'
import { dryRunFlag, toText, yesFlag } from './flags.ts'
import { oneCall } from './one-call.ts'
import { type DiffRow, diffView, noteMore, toChangeRow } from './record-changes.ts'

const poolArgument: ArgumentSpec = { name: 'POOL', description: 'the pool whose zone it is', suggest: 'pools' }

const notePending = (session: Session, result: object): void => {
  if (!('warning' in result)) return
  session.output.note('Some names do not have their records yet. The service continues; no further request is needed.')
}

const toPool = ({ args }: Input) => ({ domain: parsePool(String(args[0])) })
const toRepair = (input: Input) => ({ ...toPool(input), dryRun: input.flags.dryRun === true })

const showDifferences = async (session: Session, result: ConvergeResponse): Promise<void> => {
  const { poolDomain: pool, changes, conflicts, orphans } = result
  const rows: readonly DiffRow[] = [
    ...changes.map(toChangeRow),
    ...conflicts.map(({ subdomain, detail }) => ({ action: 'conflict', name: `${subdomain}.${pool}`, detail })),
    ...orphans.map(orphan => ({
      action: 'orphan',
      name: `${orphan.subdomain}.${pool}`,
      detail: `${formatTarget(orphan)}, records that no allocation explains`,
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
  notePending(session, result)
}

const diff = oneCall({
  name: 'diff',
  summary: 'Compare a zone with its desired records; change nothing',
  arguments: [poolArgument],
  examples: ['zones diff pool.example', 'zones diff pool.example -o json'],
  operation: 'convergeZone',
  exitCodes: ['0  the zone has its desired records', '1  the zone differs, or nothing is written to it'],
  params: input => ({ ...toPool(input), dryRun: true }),
  progress: ({ domain }) => `comparing the zone ${domain}`,
  show: async (session, result) => {
    await showDifferences(session, result)
    const isSame = result.changeCount + result.conflictCount + result.orphanCount === 0 && !result.stopped
    return isSame ? EXIT.done : EXIT.negative
  },
})

const converge = oneCall({
  name: 'converge',
  summary: 'Compare a zone with its desired records and repair it',
  arguments: [poolArgument],
  flags: [dryRunFlag],
  examples: ['zones converge pool.example', 'zones converge pool.example --dry-run'],
  operation: 'convergeZone',
  params: toRepair,
  progress: ({ domain }) => `comparing the zone ${domain}`,
  show: async (session, result, { domain, dryRun }) => {
    await showDifferences(session, result)
    if (dryRun === true || result.stopped) return
    const { changeCount, conflictCount, orphanCount } = result
    const notes = [
      [changeCount, 'Changes', 'warning' in result ? 'not all written yet' : 'written', ''],
      [conflictCount, 'Conflicts', 'not repaired', '; delete the records of the other writers'],
      [orphanCount, 'Orphans', 'not repaired', `; run: poolctl zones orphans adopt ${domain}, or remove`],
    ] as const
    for (const [count, what, state, advice] of notes)
      if (count > 0) session.output.note(`${what}, ${state}: ${count}${advice}.`)
  },
})

const republish = oneCall({
  name: 'republish',
  summary: 'Bring the records of the active names to the current template',
  arguments: [poolArgument],
  flags: [dryRunFlag],
  examples: ['zones republish pool.example --dry-run', 'zones republish pool.example'],
  operation: 'republishZone',
  params: toRepair,
  progress: ({ domain }) => `republishing the zone ${domain}`,
  show: async (session, result, { domain }) => {
    const { changes, changeCount, nameCount } = result
    await session.output.report(
      result,
      changes.map(toChangeRow),
      diffView(domain, 'every name has the current template.'),
    )
    noteMore(session, changes.length, changeCount, `changes of ${nameCount} names`)
    notePending(session, result)
  },
})

const toDifferenceRow =
  (pool: string, reserved: ReadonlySet<string>) =>
  ({ subdomain, action, databaseAddress, zoneAddress }: ZoneDifference) => ({
    action,
    name: `${subdomain}.${pool}`,
    detail: `database ${databaseAddress ?? (reserved.has(subdomain) ? 'reserved' : 'none')}, zone ${zoneAddress ?? 'none'}`,
  })

/** Names without an address that a client has nevertheless. */
const readReserved = async (session: Session, domain: string): Promise<ReadonlySet<string>> => {
  const reserved = new Set<string>()
  const api = await session.api()
  for await (const { subdomain } of api.allocations({ domain, state: 'reserved' }, session.reading))
    reserved.add(subdomain)
  return reserved
}

const resume = oneCall({
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
  operation: 'resumeZone',
  params: input => ({ ...toRepair(input), trust: input.flags.trust as 'database' | 'zone' }),
  confirm: ({ domain, trust }) => ({
    question: `Write the zone ${domain} again, with the ${trust} as the truth?`,
    expected: domain,
  }),
  progress: ({ domain }) => `comparing the zone ${domain}`,
  show: async (session, result, { domain, dryRun }) => {
    const isUnclear = result.differences.some(({ databaseAddress }) => databaseAddress === undefined)
    const reserved = isUnclear ? await readReserved(session, domain) : new Set<string>()
    const rows = result.differences.map(toDifferenceRow(domain, reserved))
    await session.output.report(result, rows, { ...diffView(domain, 'no differences.'), key: 'differences' })
    noteMore(session, rows.length, result.differenceCount, 'differences')
    if (!dryRun) session.output.note(`The zone ${domain} is written again. It was stopped because: ${result.cause}.`)
    notePending(session, result)
  },
})

const orphanColumns: readonly Column<Orphan>[] = [
  { header: 'NAME', value: ({ subdomain }) => subdomain },
  { header: 'ADDRESS', value: formatTarget },
  { header: 'RECORDS', value: ({ records }) => records.length },
  { header: 'OTHER RECORDS', value: ({ otherRecordCount }) => otherRecordCount },
]

const namesArgument: ArgumentSpec = { name: '[NAMES...]', description: 'only these names; every orphan by default' }

type OrphansOperation = 'adoptOrphans' | 'removeOrphans'

const showOrphans = async (session: Session, result: OrphansResponse, verb: string): Promise<void> => {
  const { poolDomain: pool, orphans, orphanCount, changedCount, dryRun } = result
  await session.output.report(result, orphans, {
    key: 'orphans',
    columns: orphanColumns,
    toName: ({ subdomain }) => `${subdomain}.${pool}`,
    empty: `${pool}: no orphans.`,
  })
  noteMore(session, orphans.length, orphanCount, 'orphans')
  if (!dryRun) session.output.note(`${changedCount} ${verb}.`)
  notePending(session, result)
}

const listOrphans = oneCall({
  name: 'list',
  summary: 'List the names without an allocation at which the zone has every record of a target',
  description:
    'Other records of other writers are not orphans. They are a conflict where they are in the way of a name: "poolctl zones diff" lists it.',
  arguments: [poolArgument],
  examples: ['zones orphans list pool.example'],
  operation: 'adoptOrphans',
  params: input => ({ ...toPool(input), dryRun: true }),
  progress: ({ domain }) => `reading the zone ${domain}`,
  show: (session, result) => showOrphans(session, result, 'adopted'),
})

const createOrphansCommand = (action: 'adopt' | 'remove', summary: string, operation: OrphansOperation): CommandSpec =>
  oneCall({
    name: action,
    summary,
    arguments: [poolArgument, namesArgument],
    flags: [dryRunFlag, yesFlag],
    examples: [`zones orphans ${action} pool.example --dry-run`, `zones orphans ${action} pool.example acme globex`],
    operation,
    params: input => {
      const names = parseSubdomains(Array.isArray(input.args[1]) ? input.args[1] : [])
      return { ...toRepair(input), ...(names.length === 0 ? {} : { subdomains: names }) }
    },
    confirm: ({ domain, subdomains }) => {
      const verb = action === 'adopt' ? 'Adopt' : 'Delete the records of'
      return { question: `${verb} ${subdomains?.join(', ') ?? 'every orphan'} in ${domain}?`, expected: domain }
    },
    progress: ({ domain }) => `reading the zone ${domain}`,
    show: (session, result) => showOrphans(session, result, action === 'adopt' ? 'adopted' : 'removed'),
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
  },
}

const liftCoolOff = oneCall({
  name: 'lift',
  summary: 'Make a name that is in its cool-off free',
  description: 'DNS caches, certificates and bookmarks can still lead to its former client.',
  arguments: [
    { name: 'NAME', description: 'the subdomain, or with its pool: acme.pool.example' },
    { name: '[POOL]', description: 'the pool, if NAME is only the subdomain', suggest: 'pools' },
  ],
  flags: [dryRunFlag, yesFlag],
  examples: ['zones cool-off lift acme pool.example', 'zones cool-off lift acme.pool.example --dry-run'],
  operation: 'liftCoolOff',
  params: ({ args, flags }) => {
    const { subdomain, pool } = parsePoolName(String(args[0]), toText(args[1]))
    return { domain: pool, subdomain, dryRun: flags.dryRun === true }
  },
  confirm: ({ domain, subdomain }) => ({
    question: `Make ${subdomain}.${domain} free for any client?`,
    expected: `${subdomain}.${domain}`,
  }),
  show: (session, _, { domain, subdomain }) => {
    const fqdn = `${subdomain}.${domain}`
    return session.output.done({ poolDomain: domain, subdomain, lifted: true }, `Any client can reserve ${fqdn}.`, fqdn)
  },
})

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
    converge,
    republish,
    resume,
    {
      name: 'orphans',
      summary: 'Names without an allocation at which the zone has every record of a target',
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

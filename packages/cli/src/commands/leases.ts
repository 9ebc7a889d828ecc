import { setTimeout as sleep } from 'node:timers/promises'
import type { CallOptions, LeaseClient, LeaseReading, LeaseWriteResult } from '@pool/client'
import type { Lease, LeaseStatus, LeaseTransition, RenewalResult } from '@pool/contract'
import type { ArgumentSpec, CommandSpec, FlagSpec, Flags, GroupSpec } from '../command.ts'
import { CommandError, EXIT, UsageError } from '../exit-codes.ts'
import type { Session } from '../session.ts'
import type { Column, Field } from '../table.ts'
import { toPlainLine, toStateColour } from '../text.ts'
import {
  formatDuration,
  parseCount,
  parseDuration,
  parseHolder,
  parseLeaseValue,
  parseSlot,
  parseSlots,
} from '../values.ts'
import { electCommand } from './elect.ts'
import { limitFlag, toText } from './flags.ts'
import { LIST_LIMITS } from './one-call.ts'

const slotArgument: ArgumentSpec = { name: 'SLOT', description: 'the name of the lease' }
const holderFlag: FlagSpec = {
  flags: '--holder <name>',
  description: 'the holder, unique to one process',
  isRequired: true,
}
const generationFlag: FlagSpec = {
  flags: '--generation <number>',
  description: 'only if this is the current generation; by default, the one that a read returns',
}
const ttlFlag: FlagSpec = { flags: '--ttl <duration>', description: 'how long the lease lasts: 30s by default' }
const valueFlag: FlagSpec = {
  flags: '--value <text>',
  description: 'what readers of the lease see, such as an address; a renewal without it keeps it, "" removes it',
}
const TTL_LIMITS = { min: 1_000, max: 86_400_000 } as const
const DEFAULT_TTL_MS = 30_000
const GENERATIONS = { min: 0, max: Number.MAX_SAFE_INTEGER } as const

const toTtl = (flags: Flags): number =>
  flags.ttl === undefined ? DEFAULT_TTL_MS : parseDuration(String(flags.ttl), '--ttl', TTL_LIMITS)

const toState = ({ lease, isVacant }: LeaseReading): string => {
  if (!isVacant) return 'held'
  return lease.generation === 0 ? 'never written' : lease.holder === '' ? 'released' : 'expired'
}

const toFields = (slot: string, reading: LeaseReading): readonly Field[] => {
  const { lease, remainingMs, isVacant } = reading
  return [
    ['slot', slot],
    ['state', toState(reading), isVacant ? 'yellow' : 'green'],
    ['holder', lease.holder],
    ['value', lease.value],
    ['remaining', isVacant ? undefined : formatDuration(remainingMs)],
    ['generation', lease.generation],
    ['acquired at', lease.acquiredAt],
    ['expires at', lease.expiresAt],
  ]
}

const toValue = (slot: string, reading: LeaseReading) => ({
  slot,
  state: toState(reading),
  ...reading.lease,
  remainingMs: reading.remainingMs,
})

const showLease = (session: Session, slot: string, reading: LeaseReading): Promise<void> =>
  session.output.item(toValue(slot, reading), { name: slot, fields: toFields(slot, reading) })

const get: CommandSpec = {
  name: 'get',
  summary: 'Show a lease',
  arguments: [slotArgument],
  examples: ['leases get region-pair/primary', 'leases get region-pair/primary -o json'],
  operations: ['readLease'],
  async run(session, { args }) {
    const slot = parseSlot(String(args[0]))
    const leases = await session.witness()
    await showLease(session, slot, await leases.read(slot, session.reading))
  },
}

const toWatchLine = ({ paint }: Session['output'], slot: string, reading: LeaseReading): string => {
  const { lease, remainingMs, isVacant } = reading
  const state = toState(reading)
  const holder = isVacant ? '' : ` by ${toPlainLine(lease.holder)} for ${formatDuration(remainingMs)}`
  return `${paint(new Date().toISOString(), 'dim')} ${toPlainLine(slot)} ${paint(state, toStateColour(state))}${holder}, generation ${lease.generation}${lease.value === undefined ? '' : `, value ${toPlainLine(lease.value)}`}`
}

const watch: CommandSpec = {
  name: 'watch',
  summary: 'Print a lease whenever it changes',
  description: 'A renewal is a change. It ends with Ctrl-C, or with --until-vacant.',
  arguments: [slotArgument],
  flags: [{ flags: '--until-vacant', description: 'end when no client holds the lease' }],
  examples: ['leases watch region-pair/primary', 'leases watch region-pair/primary --until-vacant'],
  operations: ['readLease'],
  async run(session, { args, flags }) {
    const slot = parseSlot(String(args[0]))
    const leases = await session.witness()
    const show = (reading: LeaseReading) =>
      session.output.line(toValue(slot, reading), toWatchLine(session.output, slot, reading))
    let last = await leases.read(slot, session.reading)
    await show(last)
    while (flags.untilVacant !== true || !last.isVacant) {
      const next = await leases.waitForChange(slot, last.lease.generation, undefined, session.reading)
      // The wait ended without a change, or an expired lease was returned at once.
      if (next === null) continue
      const isSame = next.lease.generation === last.lease.generation && next.isVacant === last.isVacant
      if (!isSame) await show(next)
      last = next
      if (isSame && next.isVacant) await sleep(VACANT_POLL_MS, undefined, { signal: session.host.interrupted })
    }
  },
}

/** Milliseconds between two reads of a lease that has expired: no wait of the witness ends with its next acquisition. */
const VACANT_POLL_MS = 2_000

const describeConflict = (
  slot: string,
  { current, conflict, mayBeOwn }: Extract<LeaseWriteResult, { kind: 'rejected' }>,
): string => {
  const { lease, remainingMs, isVacant } = current
  const holder = isVacant ? 'no client holds it' : `${lease.holder} holds it for ${formatDuration(remainingMs)}`
  const reason = conflict ?? (mayBeOwn ? 'no response' : 'another write was faster')
  const outcome = mayBeOwn ? 'was changed by this command or another client of the same name' : 'was not changed'
  return `${slot} ${outcome} (${reason}): ${holder}, generation ${lease.generation}.`
}

/**
 * Writes a lease at the generation of the flag, or at the current one, and shows it. A lease that was not changed is a
 * rejected request.
 */
const writeLease = async (
  session: Session,
  slot: string,
  flags: Flags,
  write: (leases: LeaseClient, generation: number, options: CallOptions) => Promise<LeaseWriteResult>,
): Promise<void> => {
  const leases = await session.witness()
  const generation =
    flags.generation === undefined
      ? (await leases.read(slot, session.reading)).lease.generation
      : parseCount(String(flags.generation), '--generation', GENERATIONS)
  const result = await session.write(options => write(leases, generation, options))
  if (result.kind === 'applied') return showLease(session, slot, result.current)
  if (result.kind === 'rejected') throw new CommandError(describeConflict(slot, result), EXIT.rejected)
  throw new CommandError(
    `no response arrived, and ${slot} is unchanged so far; the write can still take effect. Read it: poolctl leases get`,
    EXIT.unavailable,
  )
}

const acquire: CommandSpec = {
  name: 'acquire',
  summary: 'Acquire a vacant lease, or renew your own',
  description: 'It does not wait. To run a command while the lease is held, use "poolctl leases elect".',
  arguments: [slotArgument],
  flags: [holderFlag, valueFlag, ttlFlag, generationFlag],
  examples: [`leases acquire region-pair/primary --holder ${'region-a'} --ttl 1m`],
  operations: ['writeLease', 'readLease'],
  exitCodes: ['3  another holder has the lease, or the generation differs'],
  async run(session, { args, flags }) {
    const slot = parseSlot(String(args[0]))
    const holder = parseHolder(String(flags.holder))
    const ttlMs = toTtl(flags)
    const value = parseLeaseValue(toText(flags.value))
    return writeLease(session, slot, flags, (leases, generation, options) =>
      leases.acquire(slot, { holder, ttlMs, generation, value }, options),
    )
  },
}

interface RenewalRow {
  readonly slot: string
  readonly result: RenewalResult
}

const renewalColumns: readonly Column<RenewalRow>[] = [
  { header: 'SLOT', value: ({ slot }) => slot },
  {
    header: 'RESULT',
    value: ({ result }) => (result.status === 200 ? 'renewed' : result.status === 412 ? result.conflict : result.error),
    colour: ({ result }) => (result.status === 200 ? 'green' : 'red'),
  },
  { header: 'GENERATION', value: ({ result }) => ('lease' in result ? result.lease.generation : undefined) },
  {
    header: 'REMAINING',
    value: ({ result }) =>
      'remainingMs' in result && result.remainingMs !== undefined ? formatDuration(result.remainingMs) : undefined,
  },
]

/** Renews several leases in one request; each is decided alone. */
const renewMany = async (
  session: Session,
  slots: readonly string[],
  holder: string,
  ttlMs: number,
): Promise<number> => {
  const leases = await session.witness()
  const current = await leases.readMany(slots, session.reading)
  const requests = current.leases.map(status => {
    if ('error' in status) throw new CommandError(`${status.slot} cannot be read (${status.error}).`, EXIT.unavailable)
    return { slot: status.slot, generation: status.generation, ttlMs }
  })
  const results = await session.write(options => leases.renewMany(holder, requests, options))
  const rows = results.map(result => ({ slot: result.slot, result }))
  await session.output.report({ results }, rows, {
    key: 'results',
    columns: renewalColumns,
    toName: ({ slot }) => slot,
    empty: '',
  })
  if (results.every(({ status }) => status === 200)) return EXIT.done
  return results.some(({ status }) => status >= 500) ? EXIT.unavailable : EXIT.rejected
}

const renew: CommandSpec = {
  name: 'renew',
  summary: 'Renew the leases of a holder',
  arguments: [{ name: 'SLOTS...', description: 'the names of up to 100 leases' }],
  flags: [
    holderFlag,
    { ...valueFlag, description: `${valueFlag.description}; with one slot only` },
    ttlFlag,
    { ...generationFlag, description: `${generationFlag.description}; with one slot only` },
  ],
  examples: [
    'leases renew region-pair/primary --holder region-a',
    'leases renew slot-1 slot-2 --holder region-a --ttl 1m',
  ],
  operations: ['writeLease', 'renewLeases', 'readLease', 'listLeases'],
  exitCodes: ['3  a lease has expired, or another holder has it'],
  async run(session, { args, flags }) {
    const slots = parseSlots(Array.isArray(args[0]) ? args[0] : [])
    const holder = parseHolder(String(flags.holder))
    const ttlMs = toTtl(flags)
    const value = parseLeaseValue(toText(flags.value))
    const [slot = ''] = slots
    if (slots.length > 1) {
      if (flags.generation !== undefined || value !== undefined)
        throw new UsageError('--generation and --value are for one slot; renew the slots one by one.')
      return renewMany(session, slots, holder, ttlMs)
    }
    return writeLease(session, slot, flags, (leases, generation, options) =>
      leases.renew(slot, { holder, ttlMs, generation, value }, options),
    )
  },
}

const release: CommandSpec = {
  name: 'release',
  summary: 'Release the lease of a holder',
  description: 'Stop the work of the holder first: from then on, another client can acquire the lease.',
  arguments: [slotArgument],
  flags: [holderFlag, generationFlag],
  examples: ['leases release region-pair/primary --holder region-a'],
  operations: ['releaseLease', 'readLease'],
  exitCodes: ['3  another holder has the lease, or the generation differs'],
  async run(session, { args, flags }) {
    const slot = parseSlot(String(args[0]))
    const holder = parseHolder(String(flags.holder))
    return writeLease(session, slot, flags, (leases, generation, options) =>
      leases.release(slot, { holder, generation }, options),
    )
  },
}

const historyColumns: readonly Column<LeaseTransition>[] = [
  { header: 'AT', value: ({ at }) => at },
  { header: 'EVENT', value: ({ event }) => event },
  { header: 'FROM', value: ({ from }) => from },
  { header: 'TO', value: ({ to }) => to },
  { header: 'GENERATION', value: ({ generation }) => generation },
  { header: 'TOKEN', value: ({ token }) => token },
]

const history: CommandSpec = {
  name: 'history',
  summary: 'List the last changes of holder, newest first',
  arguments: [slotArgument],
  examples: ['leases history region-pair/primary'],
  operations: ['readLeaseHistory'],
  async run(session, { args }) {
    const slot = parseSlot(String(args[0]))
    const leases = await session.witness()
    const found = await leases.history(slot, session.reading)
    const { transitions } = found ?? { transitions: [] }
    await session.output.report({ slot, transitions }, transitions, {
      key: 'transitions',
      columns: historyColumns,
      toName: ({ to }) => to,
      empty: `${slot} was never written.`,
    })
  },
}

type ListedLease = Lease & {
  readonly slot: string
  readonly remainingMs?: number | undefined
  readonly waiters?: number
}

/** By the clock of this machine: the list is a copy that lags. */
const toListedState = ({ holder, expiresAt }: ListedLease): string => {
  if (holder === '') return 'released'
  return Date.parse(expiresAt) > Date.now() ? 'held' : 'expired'
}

const listColumns: readonly Column<ListedLease>[] = [
  { header: 'SLOT', value: ({ slot }) => slot },
  { header: 'STATE', value: toListedState },
  { header: 'HOLDER', value: ({ holder }) => holder },
  { header: 'GENERATION', value: ({ generation }) => generation },
  { header: 'ACQUIRED AT', value: ({ acquiredAt }) => acquiredAt },
  { header: 'EXPIRES AT', value: ({ expiresAt }) => expiresAt },
  { header: 'VALUE', value: ({ value }) => value },
]

const exactColumns: readonly Column<LeaseStatus>[] = [
  { header: 'SLOT', value: ({ slot }) => slot },
  { header: 'HOLDER', value: status => ('error' in status ? undefined : status.holder) },
  { header: 'GENERATION', value: status => ('error' in status ? undefined : status.generation) },
  {
    header: 'REMAINING',
    value: status =>
      'error' in status || status.remainingMs === undefined ? undefined : formatDuration(status.remainingMs),
  },
  { header: 'WAITERS', value: status => ('error' in status ? undefined : status.waiters) },
  { header: 'VALUE', value: status => ('error' in status ? undefined : status.value) },
  { header: 'ERROR', value: status => ('error' in status ? status.error : undefined), colour: () => 'red' },
]

async function* listPages(
  leases: LeaseClient,
  prefix: string | undefined,
  limit: number | undefined,
  session: Session,
) {
  let cursor: string | undefined
  let left = limit
  do {
    const page = await leases.list(
      {
        ...(prefix === undefined ? {} : { prefix }),
        ...(cursor === undefined ? {} : { cursor }),
        ...(left === undefined ? {} : { limit: Math.min(left, 1_000) }),
      },
      session.reading,
    )
    yield* page.leases
    cursor = page.nextCursor
    if (left !== undefined) left -= page.leases.length
  } while (cursor !== undefined && (left === undefined || left > 0))
}

const list: CommandSpec = {
  name: 'list',
  summary: 'List all leases from a copy that lags, or named leases exactly',
  description:
    'Without SLOTS, the leases come from an eventually consistent copy: for people, not for decisions. With SLOTS, they are exact and have the number of waiting clients.',
  arguments: [{ name: '[SLOTS...]', description: 'up to 100 leases to read exactly' }],
  flags: [{ flags: '--prefix <text>', description: 'only slots that begin with it; not with SLOTS' }, limitFlag],
  examples: ['leases list --prefix region-pair/', 'leases list region-pair/primary region-pair/backup'],
  operations: ['listLeases'],
  async run(session, { args, flags }) {
    const slots = parseSlots(Array.isArray(args[0]) ? args[0] : [])
    const prefix = toText(flags.prefix)
    const limit = flags.limit === undefined ? undefined : parseCount(String(flags.limit), '--limit', LIST_LIMITS)
    if (slots.length > 0 && (prefix !== undefined || limit !== undefined)) {
      throw new UsageError('--prefix and --limit are not for named slots; leave them out.')
    }
    const leases = await session.witness()
    const empty = 'No leases.'
    const toName = ({ slot }: { readonly slot: string }) => slot
    if (slots.length > 0) {
      const { leases: statuses } = await leases.readMany(slots, session.reading)
      await session.output.list(statuses, { key: 'leases', columns: exactColumns, toName, empty })
    } else {
      const items = listPages(leases, prefix, limit, session)
      await session.output.list<ListedLease>(items, { key: 'leases', columns: listColumns, toName, empty })
    }
  },
}

export const leaseCommands: GroupSpec = {
  name: 'leases',
  summary: 'Leases of the witness: read, hold, run a command as the leader',
  commands: [get, watch, acquire, renew, release, history, list, electCommand],
}

import type { LeaseList, LeaseListQuery, LeaseTransition } from '@pool/contract/lease'
import type { Sql } from '@pool/runtime/database/client'
import { withTimeout } from '@pool/runtime/database/time'
import { assertInTime, executeShared, LIMIT_LOCK_WAIT, type Writer } from '@pool/runtime/database/writer'
import { type LeaseState, type LeaseWrite, type RejectionReason, toWireLease } from '../lease/lease.ts'
import type { Epochs } from './epochs.ts'

/** A slot's lease and the wall clock of the server at which it was read. */
export interface StoredLease {
  readonly lease: LeaseState | undefined
  readonly wallNow: number
}

export interface SlotWrite {
  readonly slot: string
  /** `observe` stores nothing unless the clock was set back. */
  readonly request: LeaseWrite | { readonly kind: 'observe' }
  /** Identifies the token of the request in the history. */
  readonly caller: string
}

export interface WrittenLease {
  readonly outcome: 'granted' | 'renewed' | 'released' | 'absent' | 'observed' | RejectionReason
  /** The state after the decision. */
  readonly lease: LeaseState | undefined
  /** The time of the decision. */
  readonly now: number
}

export interface HistoryEntry extends LeaseTransition {
  /** Identifies the token of the request; empty if there was no request. */
  readonly token: string
}

interface LeaseRow {
  readonly holder: string | null
  /** Null: the slot was never written. */
  readonly writtenAt: number | null
  readonly acquiredAt: number | null
  readonly expiresAt: number | null
  readonly generation: number
  readonly value: string | null
  readonly now: number
}

const toLeaseState = ({
  holder,
  acquiredAt,
  writtenAt,
  expiresAt,
  generation,
  value,
}: LeaseRow): LeaseState | undefined => {
  if (acquiredAt === null || writtenAt === null) return undefined
  const times = { acquiredAt, writtenAt, generation }
  return holder === null || expiresAt === null
    ? { kind: 'released', ...times }
    : { kind: 'held', holder, expiresAt, ...times, ...(value === null ? {} : { value }) }
}

/** A slot as the column of the same name has it. Keeps the order and the prefixes. */
export const toSlotKey = (slot: string): string =>
  // biome-ignore lint/suspicious/noControlCharactersInRegex: the column cannot store U+0000
  slot.replace(/[\u0000\u0001]/g, character => (character === '\u0000' ? '\u0001\u0001' : '\u0001\u0002'))

const fromSlotKey = (key: string): string =>
  // biome-ignore lint/suspicious/noControlCharactersInRegex: see toSlotKey
  key.replace(/\u0001[\u0001\u0002]/g, pair => (pair === '\u0001\u0001' ? '\u0000' : '\u0001'))

/** Follows every slot with the prefix that precedes it: no slot is longer than 506 bytes, and no character greater. */
const AFTER_PREFIX = '\u{10ffff}'.repeat(127)

const toInput = ({ slot, request, caller }: SlotWrite, position: number) => ({
  position,
  slot: toSlotKey(slot),
  kind: request.kind,
  token: caller,
  ...('holder' in request ? { holder: request.holder, generation: request.generation } : {}),
  ...('ttlMs' in request ? { ttl_ms: request.ttlMs, value: request.value } : {}),
})

interface WrittenRow extends LeaseRow {
  readonly outcome: WrittenLease['outcome']
}

/** The server evaluates the function completely before it returns the first row, which then has the deadline compared. */
const WRITE = `
  select outcome, holder, acquired_at as "acquiredAt", written_at as "writtenAt", expires_at as "expiresAt",
    generation, value, decided_at as now, case position when 0 then ${assertInTime('position::bigint')} end as "isInTime"
  from write_leases(${LIMIT_LOCK_WAIT}, $1::jsonb) order by position`

const toRfc3339 = (ms: number): string => new Date(ms).toISOString()

export interface LeaseRepositoryOptions {
  readonly writer: Writer
  /** For reads. They wait for no lock. */
  readonly read: Sql
  readonly epochs: Epochs
  readonly timeoutMs: number
}

export type LeaseRepository = ReturnType<typeof createLeaseRepository>

/**
 * The leases in Postgres. One statement decides a write, or several of different slots or of the same: the function
 * `write_leases` contains the whole rule, reads the clock of the server, and compares the time with the deadline at its end.
 */
export const createLeaseRepository = ({ writer, read, epochs, timeoutMs }: LeaseRepositoryOptions) => {
  const writeSlots = writer.share<SlotWrite, WrittenLease>({
    rowsOf: ({ slot }) => [slot],
    repeatsRows: true,
    async execute(writes, lane, limits) {
      const rows = await epochs.run(() => executeShared<WrittenRow>(lane, WRITE, writes.map(toInput), limits))
      return rows.map(row => ({ outcome: row.outcome, lease: toLeaseState(row), now: row.now }))
    },
  })

  const select = <Row extends object>(statement: () => PromiseLike<readonly Row[]>): Promise<readonly Row[]> =>
    epochs.run(() => withTimeout(statement(), timeoutMs))

  return {
    /** Shares a statement with others, which decides the writes of one slot in their order. */
    write: writeSlots,

    /** The slots in their order, as of one moment. */
    async readMany(slots: readonly string[]): Promise<StoredLease[]> {
      const rows = await select(
        () => read<LeaseRow[]>`
          select l.holder, l.acquired_at as "acquiredAt", l.written_at as "writtenAt", l.expires_at as "expiresAt",
            l.generation + epoch.base - l.generation_base as generation, l.value, lease_clock() as now
          from (select lease_generation_base() as base offset 0) epoch,
            jsonb_array_elements_text(${read.json(slots.map(toSlotKey))}) with ordinality as input (slot, position)
            left join lateral (select * from leases where slot = input.slot limit 1) l on true
          order by position`,
      )
      return rows.map(row => ({ lease: toLeaseState(row), wallNow: row.now }))
    },

    /** The newest first. Empty if the slot was never written. */
    async readHistory(slot: string): Promise<HistoryEntry[]> {
      const rows = await select(
        () => read<(Omit<HistoryEntry, 'at'> & { readonly at: number })[]>`
          select generation, at, event, actor as by, from_holder as "from", to_holder as "to", token
          from (select lease_generation_base() offset 0) epoch, lease_history where slot = ${toSlotKey(slot)}
          order by number desc`,
      )
      return rows.map(({ at, ...row }) => ({ ...row, at: toRfc3339(at) }))
    },

    /** A page in the order of the slots' bytes, and whether more follow. */
    async list({
      prefix,
      limit,
      after,
    }: Pick<LeaseListQuery, 'prefix' | 'limit'> & { readonly after: string }): Promise<{
      readonly leases: LeaseList['leases']
      readonly isLast: boolean
    }> {
      const key = toSlotKey(prefix)
      const rows = await select(
        () => read<(LeaseRow & { readonly slot: string })[]>`
          select slot, holder, acquired_at as "acquiredAt", written_at as "writtenAt", expires_at as "expiresAt",
            generation + epoch.base - generation_base as generation, value, 0 as now
          from (select lease_generation_base() as base offset 0) epoch, leases
          where slot >= ${key} and slot > ${toSlotKey(after)} and slot < ${key + AFTER_PREFIX}
          order by slot limit ${limit + 1}`,
      )
      const leases = rows
        .slice(0, limit)
        .map(row => ({ slot: fromSlotKey(row.slot), ...toWireLease(toLeaseState(row)) }))
      return { leases, isLast: rows.length <= limit }
    },
  }
}

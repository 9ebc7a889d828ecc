import type { Probe } from '@pool/contract'
import type {
  DrainLeasesRequest,
  DrainLeasesResponse,
  Lease,
  LeaseConflict,
  LeaseHistory,
  LeaseList,
  LeaseStatusList,
  RenewalResult,
} from '@pool/contract/lease'
import { holder as holderSchema, LEASE_TTL, slot as slotSchema, WAIT } from '@pool/contract/lease'
import { leaseOperations } from '@pool/contract/lease-operations'
import { leaseProblem, NEVER_WRITTEN as NEVER_WRITTEN_DETAIL } from '@pool/contract/lease-problem'
import { ClientError, ProblemError, UnexpectedResponseError } from '../errors.ts'
import {
  type CallOptions,
  type CallRule,
  type ClientOptions,
  checkOptions,
  type OptionKinds,
  type Service,
} from '../options.ts'
import { createTransport, type Transport } from '../transport.ts'
import { compareWrite, type SentWrite } from './domain/compare-write.ts'
import { isCreatedHere } from './identity.ts'
import type { CallResult, LeaseCalls } from './lease-calls.ts'

/** A lease as one response showed it. */
export interface LeaseReading {
  readonly lease: Lease
  /** Milliseconds until the lease expires, when the witness sent the response. 0: no client holds it. */
  readonly remainingMs: number
  /** True: released, expired, or never written. */
  readonly isVacant: boolean
  /** The seconds of the wait that the witness granted; 0: it granted none. */
  readonly grantedWaitSeconds: number
}

export interface LeaseWrite {
  /** Unique to one process: from `createIdentity`. */
  readonly holder: string
  /** The generation that the write replaces, from the last response; 0: the slot was never written. */
  readonly generation: number
}

export interface LeaseGrantRequest extends LeaseWrite {
  /** Milliseconds. */
  readonly ttlMs: number
  /**
   * Text for the readers of the lease, not a secret: at most 1,024 bytes of UTF-8 without control characters. Absent: a renewal
   * keeps that of the lease. Empty: none.
   */
  readonly value?: string | undefined
}

/**
 * The result of a write. `unapplied`: no response arrived, and a read shows the lease as it was before. The write can still
 * take effect later, so decide again with `current` instead of sending it again.
 */
export type LeaseWriteResult =
  /** `read`: the current lease shows it, in a read or in the 412 to a request that a proxy sent again. */
  | { readonly kind: 'applied'; readonly current: LeaseReading; readonly confirmedBy: 'response' | 'read' }
  /**
   * `conflict` is absent if no response arrived, and a read shows another write. `mayBeOwn`: the lease has the name of this
   * holder, which is not from `createIdentity`. It comes from this write or from another process of that name, so do not act
   * on it: wait until it expires.
   */
  | {
      readonly kind: 'rejected'
      readonly current: LeaseReading
      readonly conflict?: LeaseConflict
      readonly mayBeOwn?: true
    }
  | { readonly kind: 'unapplied'; readonly current: LeaseReading; readonly error: unknown }

const { readLease, writeLease, releaseLease, renewLeases, readLeaseHistory, listLeases, drainLeases, getHealth } =
  leaseOperations

const SERVICE: Service = {
  operations: leaseOperations,
  problem: leaseProblem,
  isOwn: ({ error, detail }) =>
    error === 'not-found' ? detail === NEVER_WRITTEN_DETAIL : error !== 'unauthorized' || detail === undefined,
}

const READ: CallRule = { repeat: 'repeatable' }
const ONCE: CallRule = { repeat: 'never' }
/** The time for a response after the end of a wait. */
const WAIT_GRACE_MS = 15_000

const NEVER_WRITTEN: Lease = { holder: '', acquiredAt: '', expiresAt: '', generation: 0 }

const parseNumber = (text: string | null | undefined): number | undefined =>
  text === null || text === undefined || !/^[0-9]{1,16}$/.test(text) ? undefined : Number(text)

/** `fallbackMs` is used if a proxy has removed the header of a lease that a client holds. */
const toReading = (lease: Lease, headers: Headers, fallbackMs: number): LeaseReading => {
  const remainingMs = lease.holder === '' ? 0 : (parseNumber(headers.get('Lease-Remaining-Ms')) ?? fallbackMs)
  const wait = /(?:^|[,\s])wait="?([0-9]+)/i.exec(headers.get('Preference-Applied') ?? '')?.[1]
  return { lease, remainingMs, isVacant: remainingMs === 0, grantedWaitSeconds: parseNumber(wait) ?? 0 }
}

const isNeverWritten = (error: unknown): boolean =>
  error instanceof ProblemError && error.status === 404 && error.code === 'not-found'

const WRITE_FIELDS: OptionKinds<LeaseGrantRequest> = { holder: 'any', generation: 'any', ttlMs: 'any', value: 'any' }

/** Throws a TypeError. The types say the same, but not to JavaScript, and no response would: the witness has defaults. */
const validateWrite = (slot: unknown, write: LeaseWrite & { readonly ttlMs?: number }, isGrant: boolean): void => {
  checkOptions('A write', write, WRITE_FIELDS)
  const { holder, generation, ttlMs = Number.NaN } = write
  const maxMs = LEASE_TTL.max * 1_000
  const issues = [
    !slotSchema.safeParse(slot).success && 'slot must be text: the first argument, such as "region-pair/primary"',
    !holderSchema.safeParse(holder).success && 'holder must be text, from createIdentity',
    !(Number.isSafeInteger(generation) && generation >= 0) && 'generation must be that of the last response, or 0',
    isGrant && !(ttlMs >= 1_000 && ttlMs <= maxMs) && `ttlMs must be milliseconds from 1000 to ${maxMs}`,
  ].filter(Boolean)
  if (issues.length > 0) throw new TypeError(`${issues.join('; ')}.`)
}

/** An error that is not of the client is the reason of an aborted signal, or what `token` threw. */
const isUncertain = (error: unknown): boolean => !(error instanceof ClientError) || error.isOutcomeUnknown

/**
 * A client of the lease witness. Reads are repeated as the retry policy permits. A write is sent once: without a response,
 * the client reads the lease and compares. A method rejects with a ClientError, or with the reason of an aborted signal.
 */
export class LeaseClient {
  readonly #transport: Transport
  /** Single requests, for an elector. */
  readonly calls: LeaseCalls

  constructor(options: ClientOptions) {
    this.#transport = createTransport(options, SERVICE)
    this.calls = createLeaseCalls(this.#transport)
  }

  read(slot: string, options: CallOptions = {}): Promise<LeaseReading> {
    return readOnce(this.#transport, slot, {}, READ, options)
  }

  /**
   * Resolves when the lease is released or has expired, at once if it is vacant, and at the latest after `waitSeconds` or
   * the wait that the witness grants. `isVacant` says which. Renewals do not end the wait.
   */
  waitUntilVacant(slot: string, waitSeconds: number = WAIT.max, options: CallOptions = {}): Promise<LeaseReading> {
    return readOnce(this.#transport, slot, { waitSeconds, until: 'vacant' }, READ, options)
  }

  /**
   * Resolves when the generation is another one than `generation`, or the lease has expired; with null after `waitSeconds` or
   * the wait that the witness grants.
   */
  async waitForChange(
    slot: string,
    generation: number,
    waitSeconds: number = WAIT.max,
    options: CallOptions = {},
  ): Promise<LeaseReading | null> {
    const result = await this.#transport.call(
      readLease,
      { path: { slot }, headers: { 'If-None-Match': `"${generation}"`, Prefer: `wait=${waitSeconds}` } },
      toWaitRule(READ, waitSeconds),
      options,
    )
    return result.status === 304 ? null : toReading(result.body, result.headers, 1)
  }

  /** Acquires a vacant lease, or renews the holder's own. */
  acquire(slot: string, write: LeaseGrantRequest, options: CallOptions = {}): Promise<LeaseWriteResult> {
    return this.#put('acquire', slot, write, options)
  }

  /** Renews the holder's own lease, if it has not expired. */
  renew(slot: string, write: LeaseGrantRequest, options: CallOptions = {}): Promise<LeaseWriteResult> {
    return this.#put('renew', slot, write, options)
  }

  /** Finish or stop the work before the release: from then on another client can acquire the lease. */
  async release(slot: string, write: LeaseWrite, options: CallOptions = {}): Promise<LeaseWriteResult> {
    validateWrite(slot, write, false)
    return this.#compared('release', slot, write, options, async () => {
      const result = await sendRelease(this.#transport, slot, write, options)
      if (result.status === 412) return toRejection('release', write, result)
      const generation = parseNumber(result.headers.get('ETag')?.replaceAll('"', '')) ?? 0
      const current = toReading({ ...NEVER_WRITTEN, generation }, result.headers, 0)
      return { kind: 'applied', current, confirmedBy: 'response' }
    })
  }

  /**
   * Renews up to 100 leases of one holder in one request. Each is decided alone; the results are in the order of the request.
   * After an error each of them may or may not be renewed: read them, for example with `readMany`.
   */
  async renewMany(
    holder: string,
    leases: readonly { readonly slot: string; readonly generation: number; readonly ttlMs: number }[],
    options: CallOptions = {},
  ): Promise<readonly RenewalResult[]> {
    for (const { slot, generation, ttlMs } of leases) validateWrite(slot, { holder, generation, ttlMs }, true)
    return renewMany(this.#transport, holder, leases, options)
  }

  /** The last changes of holder, newest first; null: the slot was never written. */
  async history(slot: string, options: CallOptions = {}): Promise<LeaseHistory | null> {
    try {
      return (await this.#transport.call(readLeaseHistory, { path: { slot } }, READ, options)).body
    } catch (error) {
      if (isNeverWritten(error)) return null
      throw error
    }
  }

  /** A page of all leases, eventually consistent: for people, not for decisions. `cursor` is the `nextCursor` of a page. */
  async list(
    query: { readonly prefix?: string; readonly limit?: number; readonly cursor?: string } = {},
    options: CallOptions = {},
  ): Promise<LeaseList> {
    const { body } = await this.#transport.call(listLeases, { query }, READ, options)
    return body as LeaseList
  }

  /** The exact leases of up to 100 slots, in their order, with the number of waiting clients. */
  async readMany(slots: readonly string[], options: CallOptions = {}): Promise<LeaseStatusList> {
    const { body } = await this.#transport.call(listLeases, { query: { slot: slots } }, READ, options)
    return body as LeaseStatusList
  }

  /**
   * Brings the copies in Workers KV up to date while the witness drains, a page at a time, or those of `slots` or `objects`.
   * For operators. Call it again with `nextCursor`, and later for the slots in `pending`.
   */
  async drain(request: DrainLeasesRequest = {}, options: CallOptions = {}): Promise<DrainLeasesResponse> {
    return (await this.#transport.call(drainLeases, { body: request }, READ, options)).body
  }

  /** Returns whether the witness can respond: `unhealthy` is a result, not an error. */
  async readHealth(options: CallOptions = {}): Promise<Probe> {
    return (await this.#transport.call(getHealth, {}, READ, options)).body
  }

  async #put(kind: 'acquire' | 'renew', slot: string, write: LeaseGrantRequest, options: CallOptions) {
    validateWrite(slot, write, true)
    return this.#compared(kind, slot, write, options, async () => {
      const result = await put(this.#transport, kind, slot, write, options)
      if (result.status === 412) return toRejection(kind, write, result)
      const current = toReading(result.body, result.headers, write.ttlMs)
      return { kind: 'applied', current, confirmedBy: 'response' }
    })
  }

  /** After a write without a response: reads the lease and compares. */
  async #compared(
    kind: 'acquire' | 'renew' | 'release',
    slot: string,
    write: LeaseWrite,
    options: CallOptions,
    send: () => Promise<LeaseWriteResult>,
  ): Promise<LeaseWriteResult> {
    try {
      return await send()
    } catch (error) {
      if (!(error instanceof ClientError) || !error.isOutcomeUnknown) throw error
      const current = await this.read(slot, options)
      return toCompared(kind, write, { kind: 'rejected', current }) ?? { kind: 'unapplied', current, error }
    }
  }
}

const toWaitRule = (rule: CallRule, waitSeconds: number): CallRule => {
  if (waitSeconds === 0) return rule
  const attemptTimeoutMs = waitSeconds * 1_000 + WAIT_GRACE_MS
  return { ...rule, attemptTimeoutMs, deadlineMs: 2 * attemptTimeoutMs }
}

/** A held lease without the header of its remaining time counts as held for another millisecond. */
const readOnce = async (
  transport: Transport,
  slot: string,
  { waitSeconds = 0, until }: { readonly waitSeconds?: number; readonly until?: 'vacant' },
  rule: CallRule,
  options: CallOptions,
): Promise<LeaseReading> => {
  const headers = waitSeconds > 0 ? { Prefer: `wait=${waitSeconds}` } : {}
  const parts = { path: { slot }, query: { until }, headers }
  try {
    const result = await transport.call(readLease, parts, toWaitRule(rule, waitSeconds), options)
    if (result.status === 304) throw new Error('readLease: 304 to a read without If-None-Match.')
    return toReading(result.body, result.headers, 1)
  } catch (error) {
    if (isNeverWritten(error)) return toReading(NEVER_WRITTEN, new Headers(), 0)
    throw error
  }
}

const put = (
  transport: Transport,
  op: 'acquire' | 'renew',
  slot: string,
  { holder, generation, ttlMs, value }: LeaseGrantRequest,
  options: CallOptions,
) => {
  const body = { holder, ttlSeconds: ttlMs / 1_000, op, value }
  return transport.call(writeLease, { path: { slot }, headers: { 'If-Match': `"${generation}"` }, body }, ONCE, options)
}

const sendRelease = (transport: Transport, slot: string, { holder, generation }: LeaseWrite, options: CallOptions) => {
  const headers = { 'If-Match': `"${generation}"`, 'X-Holder': holder }
  return transport.call(releaseLease, { path: { slot }, headers }, ONCE, options)
}

const renewMany = async (
  transport: Transport,
  holder: string,
  leases: readonly { readonly slot: string; readonly generation: number; readonly ttlMs: number }[],
  options: CallOptions,
): Promise<readonly RenewalResult[]> => {
  const items = leases.map(({ slot, generation, ttlMs }) => ({ slot, generation, ttlSeconds: ttlMs / 1_000 }))
  return (await transport.call(renewLeases, { body: { holder, leases: items } }, ONCE, options)).body.results
}

/** Undefined: the lease is as it was before the write. */
const toCompared = (
  kind: SentWrite['kind'],
  { holder, generation }: LeaseWrite,
  rejected: Extract<LeaseWriteResult, { kind: 'rejected' }>,
): LeaseWriteResult | undefined => {
  const { current } = rejected
  const comparison = compareWrite({ kind, holder, isUnique: isCreatedHere(holder), generation }, current.lease)
  if (comparison === 'unapplied') return undefined
  if (comparison === 'applied') return { kind: 'applied', current, confirmedBy: 'read' }
  return comparison === 'possible' ? { ...rejected, mayBeOwn: true } : rejected
}

/** A proxy may have sent the write twice, and returned the rejection of the second one. */
const toRejection = (
  kind: SentWrite['kind'],
  write: LeaseWrite,
  { headers, body }: { headers: Headers; body: Lease },
): LeaseWriteResult => {
  const conflict = headers.get('Lease-Conflict')
  const current = toReading(body, headers, 1)
  const rejection = { kind: 'rejected', current } as const
  const rejected = conflict === null ? rejection : { ...rejection, conflict: conflict as LeaseConflict }
  // The lease of another holder shows that a release is late, not that it took effect.
  if (kind === 'release' && body.holder !== '') return rejected
  return toCompared(kind, write, rejected) ?? rejected
}

/** A failed request, as an elector sees it. */
export const toFailure = (kind: 'read' | 'write', error: unknown): CallResult => {
  const hasRetryAfter = error instanceof ProblemError || error instanceof UnexpectedResponseError
  const retryAfterMs = ((hasRetryAfter && error.retryAfter) || 0) * 1_000
  return { kind: kind === 'write' && isUncertain(error) ? 'unknown' : 'failed', retryAfterMs, error }
}

const toObserved = (reading: LeaseReading, waited: boolean): CallResult => ({
  kind: 'observed',
  lease: { ...reading.lease, remainingMs: reading.remainingMs },
  waited,
})

/** The single requests of an elector. Their time limits are the signals of the elector. */
const createLeaseCalls = (transport: Transport): LeaseCalls => {
  const read = async (slot: string, waitSeconds: number, options: CallOptions): Promise<CallResult> => {
    const until = waitSeconds > 0 ? ({ waitSeconds, until: 'vacant' } as const) : {}
    return readOnce(transport, slot, until, ONCE, options).then(
      reading => toObserved(reading, reading.grantedWaitSeconds > 0),
      error => toFailure('read', error),
    )
  }
  const write = async (send: () => Promise<CallResult>): Promise<CallResult> => {
    try {
      return await send()
    } catch (error) {
      return toFailure('write', error)
    }
  }
  const putOnce = (kind: 'acquire' | 'renew', slot: string, request: LeaseGrantRequest, options: CallOptions) =>
    write(async () => {
      const { status, body, headers } = await put(transport, kind, slot, request, options)
      if (status === 412) return toObserved(toReading(body, headers, 1), true)
      const { lease, remainingMs } = toReading(body, headers, request.ttlMs)
      return { kind: 'granted', lease: { ...lease, remainingMs } }
    })
  return {
    read: (slot, options) => read(slot, 0, options),
    waitUntilVacant: (slot, waitSeconds, options) => read(slot, waitSeconds, options),
    acquire: (slot, request, options) => putOnce('acquire', slot, request, options),
    renew: (slot, request, options) => putOnce('renew', slot, request, options),
    release: (slot, request, options) =>
      write(async () => {
        const result = await sendRelease(transport, slot, request, options)
        if (result.status === 412) return toObserved(toReading(result.body, result.headers, 1), true)
        return { kind: 'granted', lease: { ...NEVER_WRITTEN, remainingMs: 0 } }
      }),
  }
}

import {
  type ActiveAllocation,
  type Allocation,
  type BucketClaim,
  type CallId,
  type ChangeTopic,
  changeEvent,
  type Deployment,
  type DeploymentEvent,
  type DeploymentHistoryEntry,
  type DnsState,
  deployment,
  deploymentEvent,
  type ExportLine,
  exportLine,
  type FormerRecordsResponse,
  type HistoryEntry,
  type ListedName,
  MAX_IDEMPOTENCY_KEY_LENGTH,
  type ReserveResponse,
  splitTarget,
} from '@pool/contract'
import type * as z from 'zod'
import { ClientError, NoResponseError, ProblemError, UnexpectedResponseError } from '../errors.ts'
import { CALL_OPTIONS, type CallOptions, type ClientOptions, checkOptions } from '../options.ts'
import { createRandomId, pause, systemTiming, type Timing } from '../timing.ts'
import { AllocationCalls } from './calls.ts'
import { readEvents, readLines, type ServerSentEvent } from './event-stream.ts'
import type { Params, Result, WriteOptions } from './params.ts'

/** A line of a deployment's log, or its end. */
export type LogEntry =
  | {
      readonly kind: 'line'
      /** The number of the line, for `lastEventId`. */
      readonly id: string
      readonly line: DeploymentEvent
    }
  | { readonly kind: 'done'; readonly deployment: Deployment }

export interface ReserveAndCommitOptions extends WriteOptions {
  /**
   * Is called with the reservation before the commit. Store its token: if the outcome of the commit is unknown, you need it
   * to update the name, and the error does not have it.
   */
  readonly onReserved?: ((reservation: ReserveResponse) => void | Promise<void>) | undefined
}

export interface CommittedName {
  /** Proves ownership of the name at update and release. */
  readonly reservationToken: string
  /** With `warning`: the records are not published yet. */
  readonly allocation: Result<'commitName'>
}

export interface WaitOptions extends CallOptions {
  /** Milliseconds to wait in all: 300,000 by default. */
  readonly deadlineMs?: number | undefined
  /** Is called after each poll that finds the records unpublished. */
  readonly onPending?: ((dns: DnsState) => void) | undefined
}

/** The records of a name were not published in time, or the name is only reserved. The service continues to publish them. */
export class NotPublishedError extends Error {
  override readonly name = 'NotPublishedError'
  /** As the last poll returned it. */
  readonly allocation: Allocation

  constructor(allocation: Allocation) {
    const { subdomain, poolDomain, state } = allocation
    const status =
      state === 'active' ? `the status is ${allocation.dns.status}` : 'it is only reserved: commit it first'
    const detail = state === 'active' && allocation.dns.detail ? `: ${allocation.dns.detail}` : ''
    super(`${subdomain}.${poolDomain} is not published: ${status}${detail}`)
    this.allocation = allocation
  }
}

/** What `reserveAndCommit` appends to the Idempotency-Key of each of its requests. */
const RESERVE_SUFFIX = '-reserve'
const COMMIT_SUFFIX = '-commit'
const MAX_BASE_KEY_LENGTH = MAX_IDEMPOTENCY_KEY_LENGTH - RESERVE_SUFFIX.length

const DEFAULT_WAIT_MS = 300_000
const MIN_POLL_MS = 250
const MAX_POLL_MS = 4_000
/** The service sends a comment every 15 seconds if there is nothing else to send. */
const MAX_IDLE_MS = 60_000
const MIN_RECONNECT_MS = 250
const MAX_RECONNECT_MS = 10_000
const PAGE_SIZE = 500
/** For the release of a reservation whose commit failed. It expires without it too. */
const CLEANUP_DEADLINE_MS = 5_000

/** Whether a call that failed in this way can succeed later. */
const isTransient = (error: unknown): boolean =>
  error instanceof ProblemError || error instanceof UnexpectedResponseError
    ? error.status === 429 || error.status >= 502
    : error instanceof ClientError

/** Reads one page after the other. */
async function* paginate<Page extends { readonly nextCursor?: string | undefined }, Item>(
  readPage: (cursor: string | undefined) => Promise<Page>,
  toItems: (page: Page) => readonly Item[],
): AsyncGenerator<Item, void> {
  let cursor: string | undefined
  do {
    const page = await readPage(cursor)
    yield* toItems(page)
    cursor = page.nextCursor
  } while (cursor !== undefined)
}

/** Parses and validates a piece of a stream. The error quotes nothing of it. */
const parseItem = <Schema extends z.ZodType>(operation: string, schema: Schema, text: string): z.output<Schema> => {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    value = undefined
  }
  if (schema.safeParse(value).success) return value as z.output<Schema>
  throw createStreamError(operation, 'an item of the stream does not have the documented form')
}

const createStreamError = (operation: string, reason: string): UnexpectedResponseError =>
  new UnexpectedResponseError(
    { operation, attempts: 1, requestId: '', isOutcomeUnknown: false },
    { status: 200, code: undefined, detail: undefined, retryAfter: undefined, reason },
  )

type Paged<Id extends CallId> = Omit<Params<Id>, 'cursor'>

/** Client of the allocation API: a method for each operation, and helpers for what takes several requests. */
export class AllocationClient extends AllocationCalls {
  readonly #timing: Timing

  /** Throws a TypeError if an option is invalid. */
  constructor(options: ClientOptions) {
    super(options)
    this.#timing = options.timing ?? systemTiming
  }

  /**
   * Reserves a name and commits it. If the commit is rejected, the reservation is released. If its outcome is unknown
   * (`isOutcomeUnknown`), the name may be active, and otherwise its reservation expires. The Idempotency-Key may have 247
   * characters; with more, this rejects with a TypeError and sends nothing.
   */
  async reserveAndCommit(
    params: Params<'reserveName'> & Omit<Params<'commitName'>, 'reservationToken' | 'sovereignFQDN'>,
    allOptions: ReserveAndCommitOptions = {},
  ): Promise<CommittedName> {
    checkOptions('reserveAndCommit', allOptions, { ...CALL_OPTIONS, idempotencyKey: 'any', onReserved: 'function' })
    const { onReserved, idempotencyKey = createRandomId(), ...options } = allOptions
    if (idempotencyKey.length > MAX_BASE_KEY_LENGTH)
      throw new TypeError(`reserveAndCommit: idempotencyKey must have ${MAX_BASE_KEY_LENGTH} characters at most.`)
    const { target, rest: reserve } = splitTarget(params)
    const reserveKey = idempotencyKey + RESERVE_SUFFIX
    const reservation = await this.reserveName(reserve, { ...options, idempotencyKey: reserveKey })
    await onReserved?.(reservation)
    const { poolDomain, subdomain, reservationToken } = reservation
    const commit = {
      domain: poolDomain,
      subdomain,
      reservationToken,
      ...target,
      sovereignFQDN: `${subdomain}.${poolDomain}`,
    }
    try {
      const commitKey = idempotencyKey + COMMIT_SUFFIX
      const allocation = await this.commitName(commit, { ...options, idempotencyKey: commitKey })
      return { reservationToken, allocation }
    } catch (error) {
      if (error instanceof ClientError && !error.isOutcomeUnknown) {
        const release = { domain: poolDomain, subdomain, reservationToken }
        await this.releaseName(release, { deadlineMs: CLEANUP_DEADLINE_MS }).catch(() => undefined)
      }
      throw error
    }
  }

  /**
   * Polls an active name until its records are published. Waits on while the DNS provider or the service is unavailable.
   * Rejects with a NotPublishedError when the time is over.
   */
  async waitUntilPublished(name: Params<'getAllocation'>, waitOptions: WaitOptions = {}): Promise<ActiveAllocation> {
    checkOptions('waitUntilPublished', waitOptions, { ...CALL_OPTIONS, onPending: 'function' })
    const { signal, deadlineMs = DEFAULT_WAIT_MS, attemptTimeoutMs, onPending } = waitOptions
    const startedAt = this.#timing.now()
    const remaining = (): number => deadlineMs - (this.#timing.now() - startedAt)
    for (let limit = MIN_POLL_MS; ; limit = Math.min(limit * 2, MAX_POLL_MS)) {
      let failure: unknown
      try {
        const options = { signal, attemptTimeoutMs, deadlineMs: remaining() }
        const allocation = await this.getAllocation(name, options)
        if (allocation.state === 'active' && allocation.dns.status === 'published') return allocation
        failure = new NotPublishedError(allocation)
        if (allocation.state === 'reserved') throw failure
        onPending?.(allocation.dns)
      } catch (error) {
        if (!isTransient(error)) throw error
        failure = error
      }
      const ms = limit * (0.5 + this.#timing.random() / 2)
      if (ms >= remaining()) throw failure
      await pause(this.#timing, ms, signal)
    }
  }

  /**
   * Yields the log of a deployment from its start, or after `lastEventId`: the lines so far, then new ones, and `done` at
   * the end. Reconnects when the connection is lost, and yields each line once. `deadlineMs` limits how long it tries to
   * connect. Throws a ProblemError with `not-found` if the deployment is deleted meanwhile.
   */
  async *followLogs(
    { lastEventId = '', ...params }: Params<'followDeployment'>,
    options: CallOptions = {},
  ): AsyncGenerator<LogEntry, void> {
    const connect = (last: string, limits: CallOptions) =>
      this.followDeployment({ ...params, lastEventId: last }, limits)
    for await (const event of this.#followEvents(connect, lastEventId, options)) {
      if (event.name === 'done') {
        yield { kind: 'done', deployment: parseItem('followDeployment', deployment, event.data) }
        return
      }
      const line = parseItem('followDeployment', deploymentEvent, event.data)
      yield { kind: 'line', id: event.lastEventId, line }
    }
  }

  /**
   * Yields what has changed since the event before; at first every topic. Reconnects when the connection is lost or the
   * service ends it, and misses nothing. `deadlineMs` limits how long it tries to connect. Operator listener.
   */
  async *changes(options: CallOptions = {}): AsyncGenerator<readonly ChangeTopic[], void> {
    const connect = (last: string, limits: CallOptions) =>
      this.followChanges(last === '' ? {} : { lastEventId: last }, limits)
    for await (const event of this.#followEvents(connect, '', options)) {
      yield parseItem('followChanges', changeEvent, event.data).topics
    }
  }

  /** Yields the events of a stream, and connects again after the last of them whenever the stream ends. */
  async *#followEvents(
    connect: (lastEventId: string, options: CallOptions) => Promise<AsyncGenerator<Uint8Array, void>>,
    lastEventId: string,
    streamOptions: CallOptions,
  ): AsyncGenerator<ServerSentEvent, void> {
    checkOptions('The stream', streamOptions, CALL_OPTIONS)
    const { signal, ...options } = streamOptions
    let last = lastEventId
    for (let limit = MIN_RECONNECT_MS; ; limit = Math.min(limit * 2, MAX_RECONNECT_MS)) {
      const connection = new AbortController()
      const abort = (): void => connection.abort(signal?.reason)
      signal?.addEventListener('abort', abort, { once: true })
      let cancelTimer = (): void => undefined
      const isAlive = (): void => {
        cancelTimer()
        cancelTimer = this.#timing.schedule(MAX_IDLE_MS, () => connection.abort())
      }
      let isConnected = false
      try {
        signal?.throwIfAborted()
        const stream = await connect(last, { ...options, signal: connection.signal })
        isConnected = true
        isAlive()
        for await (const event of readEvents(tap(stream, isAlive))) {
          last = event.lastEventId
          limit = MIN_RECONNECT_MS
          yield event
        }
      } catch (error) {
        signal?.throwIfAborted()
        const isLost = isConnected && (connection.signal.aborted || error instanceof NoResponseError)
        if (!isLost) throw error
      } finally {
        cancelTimer()
        signal?.removeEventListener('abort', abort)
      }
      await pause(this.#timing, this.#timing.random() * limit, signal)
    }
  }

  /** Yields the names of a search, in its order. `limit` is the size of a page. Operator listener. */
  names(params: Paged<'searchNames'> = {}, options?: CallOptions): AsyncGenerator<ListedName, void> {
    return paginate(
      cursor => this.searchNames({ limit: PAGE_SIZE, ...params, cursor }, options),
      page => page.names,
    )
  }

  /** Yields the allocations of a pool, by subdomain. Not a snapshot: each page of `limit` items, 500 by default, is one read. */
  allocations(params: Paged<'listAllocations'>, options?: CallOptions): AsyncGenerator<Allocation, void> {
    return paginate(
      cursor => this.listAllocations({ limit: PAGE_SIZE, ...params, cursor }, options),
      page => page.allocations,
    )
  }

  /** Yields the transitions of a pool, or of one name with `sub`, newest first. `limit` is the size of a page. */
  historyEntries(params: Paged<'readHistory'>, options?: CallOptions): AsyncGenerator<HistoryEntry, void> {
    return paginate(
      cursor => this.readHistory({ limit: PAGE_SIZE, ...params, cursor }, options),
      page => page.entries,
    )
  }

  /** Yields the deployments, newest first. `limit` is the size of a page. */
  deployments(params: Paged<'listDeployments'> = {}, options?: CallOptions): AsyncGenerator<Deployment, void> {
    return paginate(
      cursor => this.listDeployments({ limit: PAGE_SIZE, ...params, cursor }, options),
      page => page.deployments,
    )
  }

  /** Yields what was done to deployments, newest first. `limit` is the size of a page. Operator listener. */
  deploymentHistoryEntries(
    params: Paged<'readDeploymentHistory'> = {},
    options?: CallOptions,
  ): AsyncGenerator<DeploymentHistoryEntry, void> {
    return paginate(
      cursor => this.readDeploymentHistory({ limit: PAGE_SIZE, ...params, cursor }, options),
      page => page.entries,
    )
  }

  /** Yields the bucket claims by name of the bucket. `limit` is the size of a page. Operator listener. */
  bucketClaims(params: Paged<'listBucketClaims'> = {}, options?: CallOptions): AsyncGenerator<BucketClaim, void> {
    return paginate(
      cursor => this.listBucketClaims({ limit: PAGE_SIZE, ...params, cursor }, options),
      page => page.buckets,
    )
  }

  /** Yields the records that an earlier DNS provider has from before a move. Operator listener. */
  formerRecords(
    params: Paged<'listFormerRecords'>,
    options?: CallOptions,
  ): AsyncGenerator<FormerRecordsResponse['records'][number], void> {
    return paginate(
      cursor => this.listFormerRecords({ ...params, cursor }, options),
      page => page.records,
    )
  }

  /** Yields the lines of an export. Throws an UnexpectedResponseError if the export is truncated. Operator listener. */
  async *exportLines(options?: CallOptions): AsyncGenerator<ExportLine, void> {
    let isComplete = false
    for await (const text of readLines(await this.exportInstallation(options))) {
      const line = parseItem('exportInstallation', exportLine, text)
      isComplete = line.type === 'end'
      yield line
    }
    if (!isComplete) throw createStreamError('exportInstallation', 'the export has no end; discard it')
  }
}

async function* tap(chunks: AsyncIterable<Uint8Array>, onChunk: () => void): AsyncGenerator<Uint8Array, void> {
  for await (const chunk of chunks) {
    onChunk()
    yield chunk
  }
}

import { encodeCursor } from '@pool/contract'
import { SharedLimit } from '@pool/runtime/service/shared-limit'
import type { Context } from 'hono'
import type { Page, PageQueue } from '../lib/paginate.ts'
import { toRateLimitKey } from '../lib/rate-limiter.ts'
import { type HttpEnv, type OnStreamError, RETRY_AFTER_S, sendError } from './request.ts'

/** The right to one of the responses that a limiter counts. */
export interface StreamPermit {
  /** Aborts when the response ends, from either side, and when the service stops. */
  readonly signal: AbortSignal
  /** Milliseconds that a client may let the service wait, see `createPatience`, before its connection is closed. */
  readonly stallTimeoutMs: number
  /** Milliseconds between two checks whether the session of the client has ended. */
  readonly sessionCheckMs: number
  release(): void
}

export interface StreamLimiter {
  /** Null: the maximum number of responses is open, in total or for the client address, or the service is stopping. */
  acquire(address: string | null): StreamPermit | null
}

export interface StreamLimiterOptions {
  /** Aborts when the service stops, which ends the responses. Absent: they have an end of their own and may reach it. */
  readonly stopping?: AbortSignal
  readonly maxStreams?: number
  /** What clients share beyond this kind of response. Absent: one client can have all. */
  readonly ofClients?: SharedLimit
  readonly stallTimeoutMs?: number
  readonly sessionCheckMs?: number
}

/** Limits the responses of one kind whose clients decide how long they take. */
export const createStreamLimiter = ({
  stopping,
  maxStreams = 100,
  ofClients = new SharedLimit({ total: maxStreams, perClient: maxStreams }),
  stallTimeoutMs = 60_000,
  sessionCheckMs = 10_000,
}: StreamLimiterOptions = {}): StreamLimiter => {
  const open = new Set<AbortController>()
  stopping?.addEventListener('abort', () => {
    for (const stream of open) stream.abort()
  })
  return {
    acquire(address) {
      const client = toRateLimitKey(address)
      if (stopping?.aborted || open.size >= maxStreams || !ofClients.take(client)) return null
      const stream = new AbortController()
      open.add(stream)
      const release = () => {
        if (open.delete(stream)) ofClients.release(client)
        stream.abort()
      }
      return { signal: stream.signal, stallTimeoutMs, sessionCheckMs, release }
    },
  }
}

/** The reconnection time in milliseconds (HTML standard, section 9.2, server-sent events). */
export const RETRY_FIELD = 'retry: 1000\n\n'
/** A comment, which clients ignore. It keeps proxies from closing the connection. */
export const IDLE_COMMENT = ': idle\n\n'

/** An event in the SSE format. JSON escapes line breaks, so the data is always one line. */
/** `X-Accel-Buffering` keeps nginx and similar proxies from buffering lines. */
export const EVENT_STREAM_HEADERS = { 'Content-Type': 'text/event-stream', 'X-Accel-Buffering': 'no' }

export const toEventText = (data: unknown, { id, event }: { readonly id?: number; readonly event?: string } = {}) =>
  `${id === undefined ? '' : `id: ${id}\n`}${event === undefined ? '' : `event: ${event}\n`}data: ${JSON.stringify(data)}\n\n`

/** What the kernels of both sides buffer at most: that these bytes were sent does not show that the client reads. */
const KERNEL_BYTES = 4 * 1_048_576
/** Whoever reads them, beyond those above, has as much time again. */
const PATIENCE_BYTES = 1_048_576

/**
 * How long the service still waits for a client, in milliseconds. All waits for it count, because a kernel takes a little now and
 * then of what its client never reads; and only what no kernel buffers shows that it does.
 */
export const createPatience = (maxMs: number) => {
  let leftMs = maxMs
  let sentBytes = 0
  return {
    leftMs: (): number => leftMs,
    onWaited(ms: number): void {
      leftMs -= ms
    },
    onSent(bytes: number): void {
      sentBytes += bytes
      const shown = Math.min(bytes, Math.max(0, sentBytes - KERNEL_BYTES))
      leftMs = Math.min(maxMs, leftMs + (shown / PATIENCE_BYTES) * maxMs)
    },
  }
}

/**
 * Sends the parts of `content` with status 200. It requests a part only when the client reads, so nothing accumulates for a
 * slow client. It closes the connection if the client has stopped reading or a part failed: no client takes a truncated
 * response for a whole one. The permit is released when the client has everything, or the connection is closed. The end of the
 * client's session closes it too.
 */
export const sendStream = (
  c: Context<HttpEnv>,
  content: AsyncIterable<string | Uint8Array>,
  permit: StreamPermit,
  onStreamError: OnStreamError,
  headers: Readonly<Record<string, string>>,
): Response => {
  if (c.req.method === 'HEAD') {
    permit.release()
    return c.body(null, 200, headers)
  }
  // Absent for a request that came without a connection.
  const outgoing = c.env.outgoing
  const encoder = new TextEncoder()
  const parts = content[Symbol.asyncIterator]()
  let hasEnded = false
  let isClosed = false
  let isPulling = false
  const patience = createPatience(permit.stallTimeoutMs)
  let waitsSince: number | undefined
  let stallTimer: ReturnType<typeof setTimeout> | undefined
  let sessionTimer: ReturnType<typeof setInterval> | undefined
  const cleanUp = () => {
    hasEnded = true
    clearTimeout(stallTimer)
    clearInterval(sessionTimer)
    permit.release()
    // A pending part may still fail, and its error no longer matters.
    parts.return?.().catch(() => {})
  }
  const close = (controller: ReadableStreamDefaultController) => {
    if (!isClosed) controller.close()
    isClosed = true
  }
  const end = (controller: ReadableStreamDefaultController, isAborted: boolean) => {
    if (hasEnded) return
    cleanUp()
    if (isAborted) outgoing?.destroy()
    close(controller)
  }
  /** Ends the body. Its last bytes can still be in the buffers of the connection. */
  const complete = (controller: ReadableStreamDefaultController) => {
    if (!outgoing || outgoing.destroyed) return end(controller, false)
    stallTimer = setTimeout(() => end(controller, true), patience.leftMs())
    outgoing.once('close', () => end(controller, false))
    close(controller)
  }
  const body = new ReadableStream<Uint8Array>(
    {
      start(controller) {
        if (permit.signal.aborted) return end(controller, false)
        // A client that has not read the last part would not read the end either. An EventSource reconnects.
        permit.signal.addEventListener('abort', () => end(controller, !isPulling))
        const isAuthorized = c.get('isStillAuthorized')
        if (!isAuthorized) return
        const check = async () => {
          // During an outage of the database it is unknown.
          if (!(await isAuthorized().catch(() => true))) end(controller, true)
        }
        sessionTimer = setInterval(check, permit.sessionCheckMs)
      },
      async pull(controller) {
        clearTimeout(stallTimer)
        if (waitsSince !== undefined) patience.onWaited(performance.now() - waitsSince)
        isPulling = true
        const next = await parts.next().catch((error: unknown) => ({ error }))
        // The stream ended while it waited.
        if (permit.signal.aborted) return
        if ('error' in next) {
          onStreamError(next.error, c.env.requestId)
          return end(controller, true)
        }
        if (next.done) return complete(controller)
        isPulling = false
        const part = typeof next.value === 'string' ? encoder.encode(next.value) : next.value
        controller.enqueue(part)
        patience.onSent(part.byteLength)
        waitsSince = performance.now()
        stallTimer = setTimeout(() => end(controller, true), patience.leftMs())
      },
      cancel: cleanUp,
    },
    { highWaterMark: 0 },
  )
  return c.body(body, 200, headers)
}

/** How the lists of the API are sent. */
export interface ListStreams {
  /** Shared by all lists of a listener. */
  readonly limiter: StreamLimiter
  readonly inTurn: PageQueue
  readonly onStreamError: OnStreamError
}

/** Sends the JSON text that `load` returns, in parts; 503 if too many clients are reading lists. */
export const sendList = async (
  c: Context<HttpEnv>,
  { limiter, onStreamError }: ListStreams,
  load: () => Promise<AsyncIterable<string>>,
): Promise<Response> => {
  const permit = limiter.acquire(c.env.address)
  if (!permit) return sendError(c, { kind: 'too-many-readers', retryAfterSeconds: RETRY_AFTER_S })
  try {
    const text = await load()
    c.env.outcome = 'listed'
    return sendStream(c, text, permit, onStreamError, { 'Content-Type': 'application/json' })
  } catch (error) {
    permit.release()
    throw error
  }
}

const FILE_PART_BYTES = 64 * 1_024

async function* toFileParts(content: Uint8Array): AsyncGenerator<Uint8Array, void, void> {
  for (let at = 0; at < content.length; at += FILE_PART_BYTES) yield content.subarray(at, at + FILE_PART_BYTES)
}

/** Sends a large file, of which all its readers share one copy, in parts; 503 if too many clients are reading files. */
export const sendFile = (
  c: Context<HttpEnv>,
  limiter: StreamLimiter,
  content: Uint8Array,
  contentType: string,
): Response => {
  const permit = limiter.acquire(c.env.address)
  if (!permit) return sendError(c, { kind: 'too-many-readers', retryAfterSeconds: RETRY_AFTER_S })
  const headers = { 'Content-Type': contentType, 'Content-Length': String(content.byteLength) }
  return sendStream(c, toFileParts(content), permit, () => {}, headers)
}

async function* toSinglePart(body: object): AsyncGenerator<string, void, void> {
  yield JSON.stringify(body)
}

/** Sends one page of a list, with its items in `field`. */
export const sendListPage = (
  c: Context<HttpEnv>,
  lists: ListStreams,
  field: string,
  load: () => Promise<Page<unknown>>,
): Promise<Response> =>
  sendList(c, lists, async () => {
    const { items, nextCursor } = await load()
    return toSinglePart({
      [field]: items,
      ...(nextCursor === undefined ? {} : { nextCursor: encodeCursor(nextCursor) }),
    })
  })

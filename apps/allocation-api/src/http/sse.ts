/** The right to one of the process's event streams. */
export interface StreamPermit {
  /** Aborts when the stream ends, from either side, and when the service stops. */
  readonly signal: AbortSignal
  /** Milliseconds that a client may read nothing before its stream ends. */
  readonly stallTimeoutMs: number
  release(): void
}

export interface EventStreams {
  /** Null: the maximum number of streams is open, or the service is stopping. */
  acquire(): StreamPermit | null
}

export interface EventStreamOptions {
  /** Aborts when the service stops. Streams must end then, because they have no other end. */
  readonly stopping: AbortSignal
  readonly maxStreams?: number
  readonly stallTimeoutMs?: number
}

export const createEventStreams = ({
  stopping,
  maxStreams = 100,
  stallTimeoutMs = 60_000,
}: EventStreamOptions): EventStreams => {
  const open = new Set<AbortController>()
  stopping.addEventListener('abort', () => {
    for (const stream of open) stream.abort()
  })
  return {
    acquire() {
      if (stopping.aborted || open.size >= maxStreams) return null
      const stream = new AbortController()
      open.add(stream)
      const release = () => {
        open.delete(stream)
        stream.abort()
      }
      return { signal: stream.signal, stallTimeoutMs, release }
    },
  }
}

/** The reconnection time in milliseconds (HTML standard, section 9.2, server-sent events). */
export const RETRY_FIELD = 'retry: 1000\n\n'
/** A comment, which clients ignore. It keeps proxies from closing the connection. */
export const IDLE_COMMENT = ': idle\n\n'

/** An event in the SSE format. JSON escapes line breaks, so the data is always one line. */
export const toEventText = (data: unknown, { id, event }: { readonly id?: number; readonly event?: string } = {}) =>
  `${id === undefined ? '' : `id: ${id}\n`}${event === undefined ? '' : `event: ${event}\n`}data: ${JSON.stringify(data)}\n\n`

/**
 * The body of a stream. It requests a part only when the client reads, so nothing accumulates for a slow client. `abort`
 * closes the connection if the client has stopped reading or the parts failed.
 */
export const eventStream = (
  text: AsyncIterable<string>,
  permit: StreamPermit,
  { onStreamError, abort }: { readonly onStreamError: (error: unknown) => void; readonly abort: () => void },
): ReadableStream<Uint8Array> => {
  const encoder = new TextEncoder()
  const parts = text[Symbol.asyncIterator]()
  let hasEnded = false
  let isPulling = false
  let stallTimer: ReturnType<typeof setTimeout> | undefined
  const cleanUp = () => {
    hasEnded = true
    clearTimeout(stallTimer)
    permit.release()
    // A pending part may still fail, and its error no longer matters.
    parts.return?.().catch(() => {})
  }
  const end = (controller: ReadableStreamDefaultController, isAborted: boolean) => {
    if (hasEnded) return
    cleanUp()
    if (isAborted) abort()
    controller.close()
  }
  return new ReadableStream<Uint8Array>(
    {
      start(controller) {
        if (permit.signal.aborted) return end(controller, false)
        // A client that has not read the last part would not read the end either. An EventSource reconnects.
        permit.signal.addEventListener('abort', () => end(controller, !isPulling))
      },
      async pull(controller) {
        clearTimeout(stallTimer)
        isPulling = true
        const next = await parts.next().catch((error: unknown) => ({ error }))
        // The stream ended while it waited.
        if (permit.signal.aborted) return
        if ('error' in next) {
          onStreamError(next.error)
          return end(controller, true)
        }
        if (next.done) return end(controller, false)
        isPulling = false
        controller.enqueue(encoder.encode(next.value))
        stallTimer = setTimeout(() => end(controller, true), permit.stallTimeoutMs)
      },
      cancel: cleanUp,
    },
    { highWaterMark: 0 },
  )
}

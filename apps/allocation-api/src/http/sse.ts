/** The right to one of the streams that a process has. */
export interface Seat {
  /** Aborts when the stream is over, from whichever side, and when the service stops. */
  readonly signal: AbortSignal
  /** How long a reader may take nothing, in milliseconds: then it keeps the seat of another. */
  readonly patienceMs: number
  leave(): void
}

export interface EventStreams {
  /** Null: all seats are taken, or the service stops. */
  enter(): Seat | null
}

export interface EventStreamOptions {
  /** Aborts when the service stops: streams have no end of their own, and would keep it waiting. */
  readonly stopping: AbortSignal
  readonly seats?: number
  readonly patienceMs?: number
}

export const createEventStreams = ({
  stopping,
  seats = 100,
  patienceMs = 60_000,
}: EventStreamOptions): EventStreams => {
  const taken = new Set<AbortController>()
  stopping.addEventListener('abort', () => {
    for (const seat of taken) seat.abort()
  })
  return {
    enter() {
      if (stopping.aborted || taken.size >= seats) return null
      const seat = new AbortController()
      taken.add(seat)
      const leave = () => {
        taken.delete(seat)
        seat.abort()
      }
      return { signal: seat.signal, patienceMs, leave }
    },
  }
}

/** HTML standard section 9.2, server-sent events: how soon to connect again, and a comment that nobody is told of. */
export const retryText = 'retry: 1000\n\n'
export const idleText = ': idle\n\n'

/** JSON escapes every line break, so its text is always one line of data. */
export const eventText = (data: unknown, { id, event }: { readonly id?: number; readonly event?: string } = {}) =>
  `${id === undefined ? '' : `id: ${id}\n`}${event === undefined ? '' : `event: ${event}\n`}data: ${JSON.stringify(data)}\n\n`

/**
 * The body of a stream. A part is made when it is asked for, so that nothing piles up for a slow reader. `breakOff` ends
 * the connection of a reader that cannot be told anything any more: one that takes nothing, and one whose parts failed.
 */
export const eventStream = (
  text: AsyncIterable<string>,
  seat: Seat,
  { onStreamError, breakOff }: { readonly onStreamError: (error: unknown) => void; readonly breakOff: () => void },
): ReadableStream<Uint8Array> => {
  const encoder = new TextEncoder()
  const parts = text[Symbol.asyncIterator]()
  let isOver = false
  let isAsked = false
  let patience: ReturnType<typeof setTimeout> | undefined
  const leave = () => {
    isOver = true
    clearTimeout(patience)
    seat.leave()
    // What it waits for may come later, or fail then: nobody hears it.
    parts.return?.().catch(() => {})
  }
  const end = (controller: ReadableStreamDefaultController, isBroken: boolean) => {
    if (isOver) return
    leave()
    if (isBroken) breakOff()
    controller.close()
  }
  return new ReadableStream<Uint8Array>(
    {
      start(controller) {
        if (seat.signal.aborted) return end(controller, false)
        // Who has not taken the last part yet would not take the end either. An EventSource connects again.
        seat.signal.addEventListener('abort', () => end(controller, !isAsked))
      },
      async pull(controller) {
        clearTimeout(patience)
        isAsked = true
        const next = await parts.next().catch((error: unknown) => ({ error }))
        // It was ended meanwhile.
        if (seat.signal.aborted) return
        if ('error' in next) {
          onStreamError(next.error)
          return end(controller, true)
        }
        if (next.done) return end(controller, false)
        isAsked = false
        controller.enqueue(encoder.encode(next.value))
        patience = setTimeout(() => end(controller, true), seat.patienceMs)
      },
      cancel: leave,
    },
    { highWaterMark: 0 },
  )
}

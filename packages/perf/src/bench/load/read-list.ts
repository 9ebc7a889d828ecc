import { once } from 'node:events'
import { get, type IncomingMessage } from 'node:http'
import { createCounter } from '../occurrences.ts'

export interface ListRead {
  readonly status: number
  /** Milliseconds from the request to the first byte of the body. */
  readonly firstByteMs: number
  readonly totalMs: number
  readonly bytes: number
  readonly rows: number
  /** Why it ended before its end; null: it did not. */
  readonly brokenOff: string | null
}

/** Reads a list to its end, or until it has had at least so many rows, and keeps nothing of it. */
export const readList = async (url: string, atLeast = Number.POSITIVE_INFINITY): Promise<ListRead> => {
  const rows = createCounter('{"poolDomain":')
  const started = performance.now()
  const [response] = (await once(get(url), 'response')) as [IncomingMessage]
  let firstByteMs = Number.NaN
  let bytes = 0
  let brokenOff: string | null = null
  try {
    for await (const piece of response as AsyncIterable<Buffer>) {
      if (bytes === 0) firstByteMs = performance.now() - started
      bytes += piece.length
      rows.add(piece)
      // Leaving the loop ends the connection.
      if (rows.count() > atLeast) break
    }
  } catch (error) {
    brokenOff = error instanceof Error ? error.message : String(error)
  }
  return {
    status: response.statusCode ?? 0,
    firstByteMs,
    totalMs: performance.now() - started,
    bytes,
    // The document itself begins in the same way as each of its rows.
    rows: rows.count() - 1,
    brokenOff,
  }
}

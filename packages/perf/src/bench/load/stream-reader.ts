import { once } from 'node:events'
import { get, type IncomingMessage } from 'node:http'

/** Counts a text in bytes that arrive in chunks of any size, and keeps only as many of them as the text has. */
export const createCounter = (
  text: string,
): { readonly add: (chunk: Buffer) => void; readonly count: () => number } => {
  const needle = Buffer.from(text)
  let tail = Buffer.alloc(0)
  let found = 0

  const countIn = (bytes: Buffer) => {
    for (let at = bytes.indexOf(needle); at >= 0; at = bytes.indexOf(needle, at + needle.length)) found += 1
  }
  return {
    add(chunk) {
      const keep = needle.length - 1
      // A match in the seam is whole in neither side.
      countIn(Buffer.concat([tail, chunk.subarray(0, keep)]))
      countIn(chunk)
      tail = Buffer.from(Buffer.concat([tail, chunk.subarray(-keep)]).subarray(-keep))
    },
    count: () => found,
  }
}

export interface ListRead {
  readonly status: number
  /** Milliseconds from the request to the first byte of the body. */
  readonly firstByteMs: number
  readonly totalMs: number
  readonly bytes: number
  readonly rows: number
  /** Why the response was truncated; null: it was complete. */
  readonly truncated: string | null
}

/** Reads a list to its end without keeping it. */
export const readList = async (url: string): Promise<ListRead> => {
  const rows = createCounter('{"poolDomain":')
  const started = performance.now()
  const [response] = (await once(get(url), 'response')) as [IncomingMessage]
  let firstByteMs = Number.NaN
  let bytes = 0
  let truncated: string | null = null
  try {
    for await (const chunk of response as AsyncIterable<Buffer>) {
      if (bytes === 0) firstByteMs = performance.now() - started
      bytes += chunk.length
      rows.add(chunk)
    }
  } catch (error) {
    truncated = error instanceof Error ? error.message : String(error)
  }
  return {
    status: response.statusCode ?? 0,
    firstByteMs,
    totalMs: performance.now() - started,
    bytes,
    // The document itself starts like each of its rows.
    rows: rows.count() - 1,
    truncated,
  }
}

import { createMiddleware } from 'hono/factory'
import type { HttpEnv } from './env.ts'
import { problem } from './problem.ts'

const BODY_LIMIT_BYTES = 64 * 1_024
/** So much of a body that is too large is read away, so that its connection can go on. */
const DRAIN_LIMIT_BYTES = 1_024 * 1_024

/** The body, or undefined when it is larger than the limit. */
const readBounded = async (stream: ReadableStream<Uint8Array>): Promise<Uint8Array | undefined> => {
  const chunks: Uint8Array[] = []
  let size = 0
  const reader = stream.getReader()
  for (let read = await reader.read(); !read.done; read = await reader.read()) {
    size += read.value.byteLength
    if (size <= BODY_LIMIT_BYTES) chunks.push(read.value)
    if (size > DRAIN_LIMIT_BYTES) {
      await reader.cancel()
      return undefined
    }
  }
  if (size > BODY_LIMIT_BYTES) return undefined
  if (chunks.length === 1 && chunks[0]) return chunks[0]
  const body = new Uint8Array(size)
  let at = 0
  for (const chunk of chunks) {
    body.set(chunk, at)
    at += chunk.byteLength
  }
  return body
}

/**
 * Takes in every body before anything is answered, of whatever method: an answer that leaves a body unread breaks the
 * connection for the request that comes after it.
 */
export const takeBody = createMiddleware<HttpEnv>(async (c, next) => {
  const stream = c.req.raw.body
  const body = stream ? await readBounded(stream) : new Uint8Array()
  if (!body) {
    c.header('Connection', 'close')
    return problem(c, { kind: 'body-too-large' })
  }
  c.set('body', body)
  return next()
})

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: false })

/** The body as JSON, whatever its Content-Type; an absent one is `{}`. */
export const jsonOf = (body: Uint8Array): { readonly value: unknown } | undefined => {
  if (body.byteLength === 0) return { value: {} }
  try {
    return { value: JSON.parse(utf8.decode(body)) }
  } catch {
    return undefined
  }
}

import { createMiddleware } from 'hono/factory'
import { problem } from './errors.ts'
import type { Body, HttpEnv } from './types.ts'

const BODY_LIMIT_BYTES = 64 * 1_024
/** Cloudflare's own limit on most plans. So much is read away, for the answer to what is not read can be lost. */
const DRAIN_LIMIT_BYTES = 100 * 1_024 * 1_024

const joined = (chunks: readonly Uint8Array[], size: number): Uint8Array => {
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
 * Of a body whose size is told and within the limit (of one in chunks the platform tells none). In one piece, because a
 * stream costs a tenth of what a small request does.
 */
const readWhole = async (request: Request): Promise<Body> => {
  try {
    return new Uint8Array(await request.arrayBuffer())
  } catch {
    return 'broken-off'
  }
}

const readBounded = async (stream: ReadableStream<Uint8Array>): Promise<Body> => {
  const chunks: Uint8Array[] = []
  let size = 0
  const reader = stream.getReader()
  try {
    for (let read = await reader.read(); !read.done; read = await reader.read()) {
      size += read.value.byteLength
      if (size <= BODY_LIMIT_BYTES) chunks.push(read.value)
      if (size > DRAIN_LIMIT_BYTES) {
        await reader.cancel()
        return 'endless'
      }
    }
  } catch {
    // Its sender went away, or framed it wrongly: whatever the platform calls it, there is no request.
    return 'broken-off'
  }
  return size > BODY_LIMIT_BYTES ? 'too-large' : joined(chunks, size)
}

/**
 * Takes in every body before anything is answered, of whatever method: an answer that leaves a body unread breaks the
 * connection for the request that comes after it.
 */
export const takeBody = createMiddleware<HttpEnv>(async (c, next) => {
  const request = c.req.raw
  const isSmall = Number(request.headers.get('Content-Length') ?? Number.POSITIVE_INFINITY) <= BODY_LIMIT_BYTES
  const body = isSmall ? await readWhole(request) : request.body ? await readBounded(request.body) : new Uint8Array()
  c.set('body', body)
  if (body === 'endless' || body === 'broken-off') c.header('Connection', 'close')
  return next()
})

/** What is wrong with a body is told to those only who may ask at all. */
export const wholeBody = createMiddleware<HttpEnv>(async (c, next) => {
  const body = c.get('body')
  if (body === 'broken-off') return problem(c, { kind: 'invalid-request', detail: 'The body was broken off.' })
  if (typeof body === 'string') return problem(c, { kind: 'body-too-large' })
  return next()
})

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: false })

/** The body as JSON, whatever its Content-Type; an absent one is `{}`. */
export const jsonOf = (body: Body): { readonly value: unknown } | undefined => {
  if (typeof body === 'string') return undefined
  if (body.byteLength === 0) return { value: {} }
  try {
    return { value: JSON.parse(utf8.decode(body)) }
  } catch {
    return undefined
  }
}

export interface Answer {
  readonly status: number
  readonly body: string
}

/** Bytes that make no whole answer yet, or cannot become one. */
export type Unfinished = { readonly kind: 'more' } | { readonly kind: 'broken'; readonly detail: string }

const endOfHead = '\r\n\r\n'
const more: Unfinished = { kind: 'more' }

/**
 * Reads one answer of HTTP/1.1. It knows only what the subjects send (one answer at a time, its length in
 * Content-Length) and calls everything else broken, rather than measure something that it has not understood.
 */
export const readAnswer = (bytes: Buffer): { readonly kind: 'answer'; readonly answer: Answer } | Unfinished => {
  const headLength = bytes.indexOf(endOfHead)
  if (headLength < 0) return more
  const head = bytes.toString('latin1', 0, headLength)
  const status = /^HTTP\/1\.1 (\d{3})/.exec(head)?.[1]
  const length = /\r\ncontent-length: *(\d+)/i.exec(head)?.[1]
  if (!status || !length) return { kind: 'broken', detail: 'an answer without status or Content-Length' }
  if (/\r\nconnection: *close/i.test(head)) return { kind: 'broken', detail: `a ${status} that ends the connection` }
  const total = headLength + endOfHead.length + Number(length)
  if (bytes.length < total) return more
  if (bytes.length > total) return { kind: 'broken', detail: 'bytes after the answer' }
  const body = bytes.toString('latin1', headLength + endOfHead.length)
  return { kind: 'answer', answer: { status: Number(status), body } }
}

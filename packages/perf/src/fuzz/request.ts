import { encodeRequest } from '@pool/test-kit/http1.ts'

/** A request as it is sent. Heads are Latin-1 text: a byte per character. */
export interface FuzzRequest {
  /** The row of the report: an operation of the document, or the mutated part. */
  readonly row: string
  readonly method: string
  readonly target: string
  /** Whole lines without CRLF. Of framing and Host only what is meant to be unusual. */
  readonly headers: readonly string[]
  readonly body?: Buffer
  readonly chunked?: boolean
  /** Bytes that replace all of the above: HTTP forbids them, and servers respond in different ways. */
  readonly raw?: Buffer
  /** The number of the client that sends it. */
  readonly tenant?: number
}

export const encodeFuzzRequest = ({ method, target, headers, body, chunked = false, raw }: FuzzRequest): Buffer =>
  raw ?? encodeRequest({ method, path: target, headers, chunked, ...(body ? { body } : {}) })

/** The length at which the text of a request is cut. */
const MAX_TEXT = 1_500

/** A shell command that sends the request: `printf '…' | nc 127.0.0.1 PORT`. */
export const requestText = (request: FuzzRequest): string => {
  const text = encodeFuzzRequest(request)
    .toString('latin1')
    .replace(/[^ -~]|[\\%']/g, character => {
      if (character === '\r') return '\\r'
      if (character === '\n') return '\\n'
      return character === '%' ? '%%' : `\\${character.charCodeAt(0).toString(8).padStart(3, '0')}`
    })
  return text.length <= MAX_TEXT
    ? `printf '${text}'`
    : `printf '${text.slice(0, MAX_TEXT)}…' (${text.length} characters)`
}

/** A request as it goes over the wire. Heads are Latin-1 text: each letter is a byte. */
export interface FuzzRequest {
  /** The row of the table that it counts in: an operation of the document or a grammar. */
  readonly row: string
  readonly method: string
  readonly target: string
  /** Whole lines without their end; of framing and Host only what is meant to be odd. */
  readonly headers: readonly string[]
  readonly body?: Buffer
  readonly framing?: 'length' | 'chunked'
  /** Bytes that stand in place of all of the above: what HTTP does not allow. Nobody knows how it will be answered. */
  readonly raw?: Buffer
}

const chunked = (body: Buffer): Buffer => {
  const half = Math.ceil(body.length / 2)
  const pieces = [body.subarray(0, half), body.subarray(half)].filter(piece => piece.length > 0)
  return Buffer.concat([
    ...pieces.flatMap(piece => [Buffer.from(`${piece.length.toString(16)}\r\n`), piece, Buffer.from('\r\n')]),
    Buffer.from('0\r\n\r\n'),
  ])
}

export const bytesOf = ({ method, target, headers, body, framing = 'length', raw }: FuzzRequest): Buffer => {
  if (raw) return raw
  const host = headers.some(line => /^host:/i.test(line)) ? [] : ['Host: fuzz']
  const frame =
    body === undefined ? [] : [framing === 'chunked' ? 'Transfer-Encoding: chunked' : `Content-Length: ${body.length}`]
  const head = Buffer.from(
    `${[`${method} ${target} HTTP/1.1`, ...host, ...headers, ...frame].join('\r\n')}\r\n\r\n`,
    'latin1',
  )
  return body === undefined ? head : Buffer.concat([head, framing === 'chunked' ? chunked(body) : body])
}

/** More is not shown of one request. */
const SHOWN = 1_500

/** The request so that it can be sent again: `printf '…' | nc 127.0.0.1 PORT`. */
export const shown = (request: FuzzRequest): string => {
  const text = bytesOf(request)
    .toString('latin1')
    .replace(/[^ -~]|[\\%']/g, letter =>
      letter === '\r'
        ? '\\r'
        : letter === '\n'
          ? '\\n'
          : letter === '%'
            ? '%%'
            : `\\${letter.charCodeAt(0).toString(8).padStart(3, '0')}`,
    )
  return text.length <= SHOWN ? `printf '${text}'` : `printf '${text.slice(0, SHOWN)}…' (${text.length} letters)`
}

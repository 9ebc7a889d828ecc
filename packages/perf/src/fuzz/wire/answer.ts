export interface Answer {
  readonly status: number
  /** Names in lower case; of one that came twice both, with a comma. */
  readonly headers: ReadonlyMap<string, string>
  readonly body: Buffer
  /** It said, or its form says, that the connection ends with it. */
  readonly isLast: boolean
}

export type Read =
  | { readonly kind: 'answer'; readonly answer: Answer; readonly length: number }
  | { readonly kind: 'more' }
  | { readonly kind: 'broken'; readonly detail: string }

/** What a stream ends with that could not be read on: a broken connection is the only way to say so by then. */
export const brokenOff = 'a body that was broken off'

const more: Read = { kind: 'more' }
const broken = (detail: string): Read => ({ kind: 'broken', detail })

/** The payload of a chunked body from `from`, and where it ends. */
const dechunked = (bytes: Buffer, from: number): { body: Buffer; end: number } | 'more' | 'broken' => {
  const pieces: Buffer[] = []
  for (let at = from; ; ) {
    const lineEnd = bytes.indexOf('\r\n', at)
    if (lineEnd < 0) return 'more'
    const line = bytes.toString('latin1', at, lineEnd)
    if (!/^[0-9a-f]{1,8}$/i.test(line)) return 'broken'
    const size = Number.parseInt(line, 16)
    const end = lineEnd + 2 + size
    if (bytes.length < end + 2) return 'more'
    if (bytes[end] !== 0x0d || bytes[end + 1] !== 0x0a) return 'broken'
    if (size === 0) return { body: Buffer.concat(pieces), end: end + 2 }
    pieces.push(bytes.subarray(lineEnd + 2, end))
    at = end + 2
  }
}

/**
 * The first final answer in the bytes of a connection (RFC 9112 section 6.3); those of 1xx are passed over. `isEnded`:
 * nothing more comes, which is what ends a body without a length.
 */
export const readAnswer = (bytes: Buffer, method: string, isEnded: boolean, from = 0): Read => {
  const headEnd = bytes.indexOf('\r\n\r\n', from)
  if (headEnd < 0) return more
  const [first = '', ...lines] = bytes.toString('latin1', from, headEnd).split('\r\n')
  const [, version, code] = /^HTTP\/1\.([01]) (\d{3})(?: |$)/.exec(first) ?? []
  if (code === undefined) return broken(`an answer that begins with ${JSON.stringify(first.slice(0, 40))}`)
  const status = Number(code)
  const bodyAt = headEnd + 4
  if (status >= 100 && status < 200 && status !== 101) return readAnswer(bytes, method, isEnded, bodyAt)
  const headers = new Map<string, string>()
  for (const line of lines) {
    const [, name, value = ''] = /^([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*(.*?)[ \t]*$/s.exec(line) ?? []
    if (name === undefined) return broken(`a header line ${JSON.stringify(line.slice(0, 60))}`)
    const before = headers.get(name.toLowerCase())
    headers.set(name.toLowerCase(), before === undefined ? value : `${before}, ${value}`)
  }
  const saysClose = /\bclose\b/i.test(headers.get('connection') ?? '') || version === '0'
  const answerOf = (body: Buffer, length: number, isLast = saysClose): Read => ({
    kind: 'answer',
    answer: { status, headers, body, isLast },
    length,
  })
  if (method === 'HEAD' || status === 204 || status === 304 || status === 101) return answerOf(Buffer.alloc(0), bodyAt)
  if (headers.get('transfer-encoding')?.toLowerCase() === 'chunked') {
    const read = dechunked(bytes, bodyAt)
    if (read === 'broken') return broken('a chunk that is none')
    if (read === 'more') return isEnded ? broken(brokenOff) : more
    return answerOf(read.body, read.end)
  }
  const length = headers.get('content-length')
  if (length === undefined) return isEnded ? answerOf(bytes.subarray(bodyAt), bytes.length, true) : more
  if (!/^\d+$/.test(length)) return broken(`a Content-Length of ${JSON.stringify(length)}`)
  const end = bodyAt + Number(length)
  if (bytes.length >= end) return answerOf(bytes.subarray(bodyAt, end), end)
  return isEnded ? broken(brokenOff) : more
}

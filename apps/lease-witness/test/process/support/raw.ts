import { connect, type Socket } from 'node:net'
import { TOKEN } from './witness.ts'

export interface RawAnswer {
  readonly status: number
  /** Names in lower case. */
  readonly headers: ReadonlyMap<string, string>
  readonly text: string
}

/** A connection whose bytes the test chooses itself. */
export interface RawConnection extends Disposable {
  readonly socket: Socket
  readonly write: (bytes: string | Buffer) => void
  /** The next answer that has not been taken yet; `isHead`: it has no body, whatever its length says. */
  readonly answer: (isHead?: boolean) => Promise<RawAnswer>
  /** Bytes that came and belong to no answer that was asked for. */
  readonly unread: () => string
  readonly isEnded: () => boolean
}

const ANSWER_WITHIN_MS = 15_000

interface Head {
  readonly status: number
  readonly headers: Map<string, string>
  readonly bodyAt: number
}

const headOf = (received: Buffer): Head | undefined => {
  const end = received.indexOf('\r\n\r\n')
  if (end < 0) return undefined
  const [first = '', ...rest] = received.subarray(0, end).toString('latin1').split('\r\n')
  const headers = new Map(
    rest.map(line => [line.slice(0, line.indexOf(':')).toLowerCase(), line.slice(line.indexOf(':') + 1).trim()]),
  )
  return { status: Number(/^HTTP\/1\.1 (\d{3})/.exec(first)?.[1] ?? 0), headers, bodyAt: end + 4 }
}

/** The body and where the bytes after it begin; undefined: it is not all there. */
const bodyOf = (received: Buffer, { headers, bodyAt }: Head): { text: string; end: number } | undefined => {
  if (headers.get('transfer-encoding') !== 'chunked') {
    const end = bodyAt + Number(headers.get('content-length') ?? 0)
    return received.length < end ? undefined : { text: received.toString('utf8', bodyAt, end), end }
  }
  let text = ''
  for (let at = bodyAt; ; ) {
    const lineEnd = received.indexOf('\r\n', at)
    if (lineEnd < 0) return undefined
    const size = Number.parseInt(received.toString('latin1', at, lineEnd), 16)
    const end = lineEnd + 2 + size + 2
    if (received.length < end) return undefined
    if (size === 0) return { text, end }
    text += received.toString('utf8', lineEnd + 2, end - 2)
    at = end
  }
}

export const openRaw = async (port: number): Promise<RawConnection> => {
  const socket = connect({ host: '127.0.0.1', port, noDelay: true })
  let received = Buffer.alloc(0)
  let ended: Error | undefined
  const waiting = new Set<() => void>()
  const look = () => {
    for (const again of [...waiting]) again()
  }
  socket.on('data', chunk => {
    received = Buffer.concat([received, chunk])
    look()
  })
  socket.on('error', error => {
    ended = error
    look()
  })
  socket.on('close', () => {
    ended ??= new Error('the connection was closed')
    look()
  })
  await new Promise<void>((resolve, reject) => socket.once('connect', resolve).once('error', reject))

  const take = (isHead: boolean): RawAnswer | undefined => {
    const head = headOf(received)
    if (!head) return undefined
    const hasBody = !isHead && head.status >= 200 && head.status !== 204 && head.status !== 304
    const body = hasBody ? bodyOf(received, head) : { text: '', end: head.bodyAt }
    if (!body) return undefined
    received = received.subarray(body.end)
    return { status: head.status, headers: head.headers, text: body.text }
  }
  const answer = (isHead = false) =>
    new Promise<RawAnswer>((resolve, reject) => {
      const done = () => {
        clearTimeout(timer)
        waiting.delete(again)
      }
      const again = () => {
        const taken = take(isHead)
        if (!taken && !ended) return
        done()
        if (taken) resolve(taken)
        else reject(ended)
      }
      const timer = setTimeout(() => {
        done()
        reject(new Error(`no answer within ${ANSWER_WITHIN_MS} ms; so far: ${received.toString('latin1')}`))
      }, ANSWER_WITHIN_MS)
      waiting.add(again)
      again()
    })
  return {
    socket,
    write: bytes => void socket.write(bytes),
    answer,
    unread: () => received.toString('latin1'),
    isEnded: () => ended !== undefined,
    [Symbol.dispose]: () => socket.resetAndDestroy(),
  }
}

/** The head of a request, with the token of the tests unless another Authorization is given (null: none). */
export const head = (
  method: string,
  path: string,
  headers: Readonly<Record<string, string | number>> = {},
  authorization: string | null = `Bearer ${TOKEN}`,
): string =>
  [
    `${method} ${path} HTTP/1.1`,
    'Host: witness.test',
    ...(authorization === null ? [] : [`Authorization: ${authorization}`]),
    ...Object.entries(headers).map(([name, value]) => `${name}: ${value}`),
    '',
    '',
  ].join('\r\n')

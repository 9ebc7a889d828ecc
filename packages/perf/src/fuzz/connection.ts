import { HttpConnection, HttpReadError, type HttpResponse, type StreamLimits } from '@pool/test-kit/http1.ts'
import { encodeFuzzRequest, type FuzzRequest } from './request.ts'

/** The detail of a response that ended early: a broken connection is the only way to report an error by then. */
export const TRUNCATED = 'a truncated response'

export type RequestOutcome =
  | { readonly kind: 'response'; readonly response: HttpResponse; readonly extraBytes: number }
  /** The connection ended without a response. */
  | { readonly kind: 'closed' }
  | { readonly kind: 'malformed'; readonly detail: string }
  /** Neither a response nor an end within the deadline. */
  | { readonly kind: 'timeout' }
  /** An event stream exceeded one of its limits. */
  | { readonly kind: 'silent' }
  | { readonly kind: 'endless' }

export interface Exchange {
  readonly request: FuzzRequest
  readonly outcome: RequestOutcome
  /** Milliseconds. */
  readonly sentAt: number
  readonly answeredAt: number
}

export interface FuzzConnectionOptions {
  readonly port: number
  readonly deadlineMs: number
  readonly stream?: StreamLimits | undefined
  /** After this time a malformed request that got no response is ended from this side. */
  readonly endAfterMs?: number
}

/** Whether there is more than interim responses (1xx): a 100 is not a response to the request. */
const hasResponse = (unread: string): boolean => !/^(?:HTTP\/1\.1 1\d\d [^\r]*\r\n\r\n)*$/.test(unread.slice(0, 200))

const toOutcome = ({ kind, message }: HttpReadError, isEndedHere: boolean): RequestOutcome => {
  if (kind === 'malformed') return { kind, detail: message }
  if (kind !== 'truncated') return { kind }
  // Most servers treat a half-closed connection as gone, so a response may end there.
  return isEndedHere ? { kind: 'closed' } : { kind: 'malformed', detail: TRUNCATED }
}

/** Keeps its connection alive from one valid request to the next. Each malformed request has a connection of its own. */
export class FuzzConnection implements Disposable {
  readonly #options: FuzzConnectionOptions
  #current: HttpConnection | undefined

  constructor(options: FuzzConnectionOptions) {
    this.#options = options
  }

  /** One request at a time. A connection that ended is replaced. */
  async send(request: FuzzRequest): Promise<RequestOutcome> {
    const { port, deadlineMs, stream, endAfterMs = 40 } = this.#options
    // A server may close an idle connection at any time: that is not an outcome of either request.
    if (request.raw || !this.#current?.isOpen) this[Symbol.dispose]()
    let isEndedHere = false
    let timer: NodeJS.Timeout | undefined
    try {
      this.#current ??= await HttpConnection.open(port)
      const connection = this.#current
      const read = connection.send(encodeFuzzRequest(request), {
        isHead: request.method === 'HEAD',
        timeoutMs: deadlineMs,
        ...(stream ? { stream } : {}),
      })
      if (request.raw) {
        timer = setTimeout(() => {
          if (hasResponse(connection.unread)) return
          isEndedHere = true
          connection.socket.end()
        }, endAfterMs)
      }
      const response = await read
      const extraBytes = connection.unread.length
      if (request.raw || response.isLast || extraBytes > 0) this[Symbol.dispose]()
      return { kind: 'response', response, extraBytes }
    } catch (error) {
      this[Symbol.dispose]()
      return error instanceof HttpReadError ? toOutcome(error, isEndedHere) : { kind: 'closed' }
    } finally {
      clearTimeout(timer)
    }
  }

  [Symbol.dispose](): void {
    this.#current?.close()
    this.#current = undefined
  }
}

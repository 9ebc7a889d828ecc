import { IncomingMessage } from 'node:http'
import { BodyError, type BodyFailure, isEncoded } from './body-error.ts'
import type { SharedLimit } from './shared-limit.ts'

export interface ReceivedRequest extends IncomingMessage {
  /** The whole body, once. A request that is answered without it costs no memory for it. Rejects with a `BodyError`. */
  readBody(maxBytes: number): Promise<Uint8Array>
  /** Lets the handler read a body of any size and duration as a stream. Throws a `BodyError`. */
  streamBody(): void
  /** Drops what has arrived of the body and what will. */
  discardBody(): void
}

export interface BodyLimits {
  /** Milliseconds for a body of limited size. */
  readonly timeoutMs: number
  /** The bytes of bodies of which a part has not arrived. */
  readonly unfinishedBytes: SharedLimit
  /** Whose share the bytes count in; null: nobody's. */
  readonly toClient: (request: IncomingMessage) => string | null
}

interface BodyState {
  arrivedBytes: number
  countedBytes: number
  client: string | null
  isStream: boolean
  failure: BodyFailure | null
  /** What `readBody` waits with; null: it does not wait. */
  reading: { readonly parts: Buffer[]; readonly maxBytes: number; readonly settle: () => void } | null
}

/** RFC 9112 section 6.3. */
export const hasBody = ({ headers }: IncomingMessage): boolean =>
  headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0

/**
 * The class of the requests of a server. The parser passes each part of a body to `push`, whether or not a handler reads the
 * body, so this is where memory is counted. A body that arrives in one part is never counted, and so never rejected.
 */
export const createReceivedRequest = ({ timeoutMs, unfinishedBytes, toClient }: BodyLimits) =>
  class extends IncomingMessage implements ReceivedRequest {
    /** Null: nothing of the body has arrived, and nobody waits for it. */
    #body: BodyState | null = null

    get #state(): BodyState {
      this.#body ??= { arrivedBytes: 0, countedBytes: 0, client: null, isStream: false, failure: null, reading: null }
      return this.#body
    }

    get #length(): number {
      return Number(this.headers['content-length'])
    }

    override push(part: Buffer | null, encoding?: BufferEncoding): boolean {
      if (part === null) {
        this.#release()
        const isMore = super.push(null)
        this.#body?.reading?.settle()
        return isMore
      }
      const state = this.#state
      this.#count(state, part.length)
      if (state.failure) return true
      if (!state.reading) return super.push(part, encoding)
      state.reading.parts.push(part)
      return true
    }

    #count(state: BodyState, bytes: number): void {
      if (state.isStream || state.failure) return
      state.arrivedBytes += bytes
      const isLast = state.arrivedBytes === this.#length
      if (state.countedBytes === 0 && !isLast) state.client = toClient(this)
      if (state.reading && state.arrivedBytes > state.reading.maxBytes) this.#fail('body-too-large')
      else if (isLast) return
      else if (unfinishedBytes.take(state.client, bytes)) state.countedBytes += bytes
      else this.#fail('overloaded')
    }

    #release(): void {
      if (!this.#body || this.#body.countedBytes === 0) return
      unfinishedBytes.release(this.#body.client, this.#body.countedBytes)
      this.#body.countedBytes = 0
    }

    #fail(failure: BodyFailure): void {
      this.#state.failure ??= failure
      this.#release()
      this.#state.reading?.settle()
    }

    #throwFailure(maxBytes = Number.POSITIVE_INFINITY): void {
      const { arrivedBytes, failure } = this.#state
      if (isEncoded(this.headers['content-encoding'])) throw new BodyError('unsupported-encoding')
      if (this.#length > maxBytes || arrivedBytes > maxBytes) throw new BodyError('body-too-large')
      if (failure) throw new BodyError(failure)
    }

    async readBody(maxBytes: number): Promise<Uint8Array> {
      this.#throwFailure(maxBytes)
      if (this.complete) return this.read() ?? new Uint8Array()
      const { promise, resolve } = Promise.withResolvers<void>()
      const parts: Buffer[] = []
      const state = this.#state
      state.reading = { parts, maxBytes, settle: resolve }
      const timer = setTimeout(() => this.#fail('request-timeout'), timeoutMs)
      const arrived: Buffer | null = this.read()
      if (arrived) parts.push(arrived)
      if (this.destroyed) resolve()
      await promise
      clearTimeout(timer)
      state.reading = null
      // Otherwise the request would not end.
      this.resume()
      if (state.failure || !this.complete) throw new BodyError(state.failure ?? 'body-aborted')
      const [whole] = parts
      return whole && parts.length === 1 ? whole : Buffer.concat(parts)
    }

    streamBody(): void {
      this.#throwFailure()
      this.#release()
      this.#state.isStream = true
    }

    discardBody(): void {
      this.#fail('body-aborted')
      this.resume()
    }

    override _destroy(error: Error | null, callback: (error?: Error | null) => void): void {
      this.#release()
      this.#body?.reading?.settle()
      super._destroy(error, callback)
    }
  }

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

/** RFC 9112 section 6.3. */
export const hasBody = ({ headers }: IncomingMessage): boolean =>
  headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0

/**
 * The class of the requests of a server. The parser passes each part of a body to `push`, whether or not a handler reads the
 * body, so this is where memory is counted. A body that arrives in one part is never counted, and so never rejected.
 */
export const createReceivedRequest = ({ timeoutMs, unfinishedBytes, toClient }: BodyLimits) =>
  class extends IncomingMessage implements ReceivedRequest {
    #arrivedBytes = 0
    #countedBytes = 0
    #client: string | null = null
    #isStream = false
    #failure: BodyFailure | null = null
    /** What `readBody` waits with; null: it does not wait. */
    #reading: { readonly parts: Buffer[]; readonly maxBytes: number; readonly settle: () => void } | null = null

    get #length(): number {
      return Number(this.headers['content-length'])
    }

    override push(part: Buffer | null, encoding?: BufferEncoding): boolean {
      if (part === null) {
        this.#release()
        const isMore = super.push(null)
        this.#reading?.settle()
        return isMore
      }
      this.#count(part.length)
      if (this.#failure) return true
      if (!this.#reading) return super.push(part, encoding)
      this.#reading.parts.push(part)
      return true
    }

    #count(bytes: number): void {
      if (this.#isStream || this.#failure) return
      this.#arrivedBytes += bytes
      const isLast = this.#arrivedBytes === this.#length
      if (this.#countedBytes === 0 && !isLast) this.#client = toClient(this)
      if (this.#reading && this.#arrivedBytes > this.#reading.maxBytes) this.#fail('body-too-large')
      else if (isLast) return
      else if (unfinishedBytes.take(this.#client, bytes)) this.#countedBytes += bytes
      else this.#fail('overloaded')
    }

    #release(): void {
      if (this.#countedBytes > 0) unfinishedBytes.release(this.#client, this.#countedBytes)
      this.#countedBytes = 0
    }

    #fail(failure: BodyFailure): void {
      this.#failure ??= failure
      this.#release()
      this.#reading?.settle()
    }

    #throwFailure(maxBytes = Number.POSITIVE_INFINITY): void {
      if (isEncoded(this.headers['content-encoding'])) throw new BodyError('unsupported-encoding')
      if (this.#length > maxBytes || this.#arrivedBytes > maxBytes) throw new BodyError('body-too-large')
      if (this.#failure) throw new BodyError(this.#failure)
    }

    async readBody(maxBytes: number): Promise<Uint8Array> {
      this.#throwFailure(maxBytes)
      if (this.complete) return this.read() ?? new Uint8Array()
      const { promise, resolve } = Promise.withResolvers<void>()
      const parts: Buffer[] = []
      this.#reading = { parts, maxBytes, settle: resolve }
      const timer = setTimeout(() => this.#fail('request-timeout'), timeoutMs)
      const arrived: Buffer | null = this.read()
      if (arrived) parts.push(arrived)
      if (this.destroyed) resolve()
      await promise
      clearTimeout(timer)
      this.#reading = null
      // Otherwise the request would not end.
      this.resume()
      if (this.#failure || !this.complete) throw new BodyError(this.#failure ?? 'body-aborted')
      return Buffer.concat(parts)
    }

    streamBody(): void {
      this.#throwFailure()
      this.#release()
      this.#isStream = true
    }

    discardBody(): void {
      this.#fail('body-aborted')
      this.resume()
    }

    override _destroy(error: Error | null, callback: (error?: Error | null) => void): void {
      this.#release()
      this.#reading?.settle()
      super._destroy(error, callback)
    }
  }

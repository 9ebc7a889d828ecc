import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { HttpResponse, parseResponse } from '@pool/test-kit/http1.ts'

/** Longer than a service takes for any response of a load. */
const TIMEOUT_MS = 30_000

const STATUS = 'HTTP/1.1 200'.length
const LENGTH = /\r\ncontent-length: (\d+)\r/i
const CLOSE = /\r\nconnection: close\r/i

/** Of this machine, or of another one. */
export interface Server {
  readonly host: string
  readonly port: number
}

/** The whole of `bytes` as one response with a length; null: they are something else. */
const parseWhole = (bytes: Buffer): HttpResponse | null => {
  const text = bytes.toString('latin1')
  const headEnd = text.indexOf('\r\n\r\n')
  if (headEnd < 0 || !text.startsWith('HTTP/1.1 ')) return null
  const head = text.slice(0, headEnd + 2)
  const length = LENGTH.exec(head)
  const bodyStart = headEnd + 4
  if (!length || CLOSE.test(head) || bytes.length !== bodyStart + Number(length[1])) return null
  return new HttpResponse(Number(head.slice(STATUS - 3, STATUS)), '', bytes.subarray(bodyStart), false)
}

/**
 * A keep-alive connection of the load generator, with one request at a time. It costs a fraction of `HttpConnection`, which
 * has a timer for each response and checks each header: on two cores, the generator must not be what limits a fast server.
 * A response does not have its headers.
 */
export class LoadConnection implements Disposable {
  readonly #socket: Socket
  #received: Buffer | null = null
  #pending: { readonly resolve: (response: HttpResponse) => void; readonly reject: (error: Error) => void } | null =
    null
  #failure: Error | null = null

  private constructor(socket: Socket) {
    this.#socket = socket
    socket.on('data', chunk => this.#receive(chunk))
    socket.setTimeout(TIMEOUT_MS, () => socket.destroy(new Error('no complete response in time')))
    socket.on('error', error => this.#fail(error))
    socket.on('close', () => this.#fail(new Error('no response: the connection was closed')))
  }

  static async open({ host, port }: Server): Promise<LoadConnection> {
    const socket = connect({ port, host, noDelay: true })
    await once(socket, 'connect')
    return new LoadConnection(socket)
  }

  send(bytes: string): Promise<HttpResponse> {
    if (this.#failure) return Promise.reject(this.#failure)
    this.#socket.write(bytes, 'latin1')
    return new Promise((resolve, reject) => {
      this.#pending = { resolve, reject }
    })
  }

  [Symbol.dispose](): void {
    this.#socket.destroy()
  }

  #receive(chunk: Buffer): void {
    const whole = this.#received === null ? parseWhole(chunk) : null
    if (whole) {
      this.#resolve(whole)
      return
    }
    this.#received = this.#received ? Buffer.concat([this.#received, chunk]) : chunk
    const parsed = parseResponse(this.#received)
    if (parsed.kind === 'incomplete') return
    this.#received = null
    if (parsed.kind === 'response') this.#resolve(parsed.response)
    else this.#fail(new Error(`a ${parsed.kind} response`))
  }

  #resolve(response: HttpResponse): void {
    const pending = this.#pending
    this.#pending = null
    pending?.resolve(response)
  }

  #fail(error: Error): void {
    this.#failure ??= error
    const pending = this.#pending
    this.#pending = null
    pending?.reject(error)
  }
}

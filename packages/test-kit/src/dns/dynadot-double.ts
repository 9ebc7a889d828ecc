import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { type DoubleDomain, type DoubleRecord, error, fresh, got, toGivenSettings } from './dynadot-domain.ts'

export type DynadotCommand = 'get_dns' | 'set_dns2'

/** What befalls one call. Those without an answer keep the account busy until the client leaves, unless they say more. */
export type DynadotFault =
  | 'no answer, no effect'
  | 'no answer, with effect'
  /**
   * get_dns: the state before the last change, by set_dns2 or past the API. Never twice in a row for a domain: the
   * next get_dns that is carried out sees the state as it is, even if its fault is this one.
   */
  | 'stale'
  /** No answer. The effect comes when this settles, and the account is busy until then, whether or not the client left. */
  | { readonly effectAfter: Promise<unknown> }
  /** The first half of the answer's text. */
  | 'half text'
  /** A success without any settings in it. */
  | 'half content'
  | 'busy'
  /** HTTP, no effect. */
  | { readonly status: number; readonly retryAfter?: string }
  /** Dynadot's error envelope with this text, no effect. */
  | { readonly error: string }

export interface DynadotDoubleOptions {
  readonly domains: readonly string[]
  readonly apiKey: string
  /** Milliseconds that a call takes. */
  readonly delayMs?: number
  /** Asked for each call that no fault was scheduled for by `fail`. */
  readonly nextFault?: (command: DynadotCommand) => DynadotFault | undefined
  /** Why set_dns2 does not take this record, beside the reasons that the double knows. */
  readonly validateRecord?: (record: DoubleRecord) => string | undefined
}

/** What came, and what became of it. */
export interface DynadotCounts {
  /** Let in, answered or not. */
  get_dns: number
  set_dns2: number
  /** Rejected because another request was in flight. */
  busy: number
  /** Not let in, because the command is neither. */
  other: number
  /** Answers with an old state. */
  stale: number
  /** Of set_dns2: each replaced the whole set. */
  effects: number
}

/** Dynadot's API 3 (JSON) for one account, on a port of this machine. */
export interface DynadotDouble extends AsyncDisposable {
  readonly url: string
  /** The state of a domain as it is now. */
  domain(name: string): DoubleDomain
  /** Changes a domain past the API. */
  change(name: string, part: Partial<DoubleDomain>): void
  /** The next call of `command` that has no fault yet gets this one. */
  fail(command: DynadotCommand, fault: DynadotFault): void
  readonly calls: Readonly<DynadotCounts>
  resetCalls(): void
  /** Connections break and are refused, until `start`, which takes the same port again. */
  stop(): Promise<void>
  start(): Promise<void>
}

const none: DynadotCounts = { get_dns: 0, set_dns2: 0, busy: 0, other: 0, stale: 0, effects: 0 }

/**
 * A double of what is known of Dynadot's API: the key in the query, HTTP 200 for errors too, the whole record set
 * replaced, one request at a time for the account (another is told that it is busy), limits. An order that came has its
 * effect after the delay even when the client has left by then. Unknown and guessed: most texts of errors, that an
 * empty set is taken, that set_dns2 without a TTL means 300, that an account is busy for as long as a call that was
 * given up is carried out. Left out: that other names are refused beside a CNAME, and the option to add to the set.
 */
export const startDynadotDouble = async ({
  domains,
  apiKey,
  delayMs = 0,
  nextFault = () => undefined,
  validateRecord = () => undefined,
}: DynadotDoubleOptions): Promise<DynadotDouble> => {
  const states = new Map(domains.map(name => [name, fresh]))
  const earlier = new Map(states)
  const faults: { command: DynadotCommand; fault: DynadotFault }[] = []
  const wasStale = new Set<string>()
  const calls = { ...none }
  const sockets = new Set<Socket>()
  let isBusy = false

  const takeFault = (command: DynadotCommand): DynadotFault | undefined => {
    const index = faults.findIndex(fault => fault.command === command)
    return index < 0 ? nextFault(command) : faults.splice(index, 1)[0]?.fault
  }

  const become = (name: string, next: DoubleDomain): void => {
    earlier.set(name, states.get(name) ?? fresh)
    states.set(name, next)
  }

  /** The state that get_dns shows. */
  const shown = (name: string, state: DoubleDomain, isStale: boolean): DoubleDomain => {
    const isSecond = wasStale.delete(name)
    if (!isStale || isSecond) return state
    wasStale.add(name)
    calls.stale += 1
    return earlier.get(name) ?? state
  }

  const perform = (command: DynadotCommand, query: URLSearchParams, fault: DynadotFault | undefined): unknown => {
    const name = query.get('domain') ?? ''
    const state = states.get(name)
    const envelope = command === 'get_dns' ? 'GetDnsResponse' : 'SetDnsResponse'
    if (!state) return error(envelope, 'could not find domain in your account')
    if (command === 'get_dns') return got(shown(name, state, fault === 'stale'))
    const main = toGivenSettings(query, 'main', validateRecord)
    const sub = toGivenSettings(query, 'sub', validateRecord)
    if (typeof main === 'string') return error(envelope, main)
    if (typeof sub === 'string') return error(envelope, sub)
    become(name, { mode: 'Dynadot DNS', ttl: query.get('ttl') ?? '300', main, sub })
    calls.effects += 1
    return { SetDnsResponse: { ResponseCode: 0, Status: 'success' } }
  }

  const handle = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const left = new Promise<void>(resolve => response.once('close', resolve))
    const query = new URL(request.url ?? '', 'http://double').searchParams
    const command = query.get('command')
    const send = (body: unknown, status = 200, headers: Record<string, string> = {}) => {
      const text = typeof body === 'string' ? body : JSON.stringify(body)
      response.writeHead(status, { 'Content-Type': 'application/json', ...headers }).end(text)
    }
    if (query.get('key') !== apiKey) return send(error('Response', 'invalid key'))
    if (command !== 'get_dns' && command !== 'set_dns2') {
      calls.other += 1
      return send(error('Response', 'invalid command'))
    }
    const envelope = command === 'get_dns' ? 'GetDnsResponse' : 'SetDnsResponse'
    const busy = { [envelope]: { ResponseCode: '5', Status: 'system_busy' } }
    if (isBusy) {
      calls.busy += 1
      return send(busy)
    }
    isBusy = true
    calls[command] += 1
    let isUnderWay = true
    const end = () => {
      if (isUnderWay) isBusy = false
      isUnderWay = false
    }
    try {
      const fault = takeFault(command)
      if (delayMs > 0) await new Promise(resolve => setTimeout(resolve, delayMs))
      if (fault === 'no answer, no effect') return await left
      if (fault === 'busy') return send(busy)
      if (typeof fault === 'object' && 'effectAfter' in fault) {
        await fault.effectAfter
        perform(command, query, undefined)
        end()
        return await left
      }
      if (typeof fault === 'object') {
        if ('error' in fault) return send(error(envelope, fault.error))
        const headers: Record<string, string> = fault.retryAfter ? { 'Retry-After': fault.retryAfter } : {}
        return send('trouble', fault.status, headers)
      }
      const answer = perform(command, query, fault)
      if (fault === 'no answer, with effect') return await left
      const text = JSON.stringify(answer)
      // The account is free before the client can know that it is.
      end()
      if (fault === 'half text') return send(text.slice(0, text.length / 2))
      if (fault === 'half content') return send({ [envelope]: { ResponseCode: 0, Status: 'success' } })
      return send(answer)
    } finally {
      end()
    }
  }

  // 100 records are more than the 16 KiB of a request line and headers that Node takes by default.
  const server = createServer({ maxHeaderSize: 256 * 1_024 }, (request, response) => {
    handle(request, response).catch(() => response.destroy())
  })
  server.on('connection', socket => {
    sockets.add(socket)
    socket.once('close', () => sockets.delete(socket))
  })
  const listen = (port: number) => new Promise<void>(resolve => server.listen(port, '127.0.0.1', resolve))
  const stop = async () => {
    if (!server.listening) return
    const closed = new Promise(resolve => server.close(resolve))
    for (const socket of sockets) socket.destroy()
    await closed
  }
  await listen(0)
  const { port } = server.address() as AddressInfo

  return {
    url: `http://127.0.0.1:${port}/api3.json`,
    domain: name => states.get(name) ?? fresh,
    change(name, part) {
      become(name, { ...(states.get(name) ?? fresh), ...part })
    },
    fail: (command, fault) => void faults.push({ command, fault }),
    calls,
    resetCalls: () => void Object.assign(calls, none),
    stop,
    start: () => listen(port),
    [Symbol.asyncDispose]: stop,
  }
}

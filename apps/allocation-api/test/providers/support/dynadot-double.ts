import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { type AddressInfo, isIPv4, type Socket } from 'node:net'

export type DynadotCommand = 'get_dns' | 'set_dns2'

/** As get_dns lists them and set_dns2 takes them; `host` is empty in `main`. */
export interface DoubleRecord {
  readonly host: string
  /** Upper case. */
  readonly type: string
  readonly value: string
  /** Empty: none. */
  readonly extra: string
}

export interface DoubleDomain {
  readonly mode: string
  /** As the API writes it: seconds; empty: none. */
  readonly ttl: string
  readonly main: readonly DoubleRecord[]
  readonly sub: readonly DoubleRecord[]
}

/** What befalls one call. Those without an answer end when the client leaves. */
export type DynadotFault =
  | 'no answer, no effect'
  | 'no answer, with effect'
  /** get_dns: the state before the last set_dns2. */
  | 'stale'
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
  /** Calls that came, answered or not. Those answered busy are counted under `busy` and not under their command. */
  readonly calls: Record<DynadotCommand | 'busy' | 'other', number>
  resetCalls(): void
  /** Connections break and are refused, until `start`, which takes the same port again. */
  stop(): Promise<void>
  start(): Promise<void>
}

const MOST = { main: 20, sub: 100 }

const fresh: DoubleDomain = { mode: 'Dynadot DNS', ttl: '3600', main: [], sub: [] }

const error = (envelope: string, text: string) => ({
  [envelope]: { ResponseCode: '-1', Status: 'error', Error: text },
})

const listOf = (records: readonly DoubleRecord[], place: 'main' | 'sub') =>
  records.map(({ host, type, value, extra }) => ({
    ...(place === 'sub' ? { Subhost: host } : {}),
    RecordType: type,
    Value: value,
    ...(extra === '' ? {} : { Value2: extra }),
  }))

const got = ({ mode, ttl, main, sub }: DoubleDomain) => ({
  GetDnsResponse: {
    ResponseCode: 0,
    Status: 'success',
    GetDns: {
      NameServerSettings: {
        Type: mode,
        ...(main.length > 0 ? { MainDomains: listOf(main, 'main') } : {}),
        ...(sub.length > 0 ? { SubDomains: listOf(sub, 'sub') } : {}),
        ...(ttl === '' ? {} : { TTL: ttl }),
      },
    },
  },
})

/** The records that a request gives; a text: why Dynadot does not take them. */
const givenOf = (query: URLSearchParams, place: 'main' | 'sub'): DoubleRecord[] | string => {
  const records: DoubleRecord[] = []
  const indices = Array.from(query.keys()).flatMap(
    name => new RegExp(`^${place}_record_type(\\d+)$`).exec(name)?.[1] ?? [],
  )
  for (const index of indices.map(Number).sort((a, b) => a - b)) {
    if (index >= MOST[place]) return `only ${MOST[place]} ${place} records can be set`
    const type = query.get(`${place}_record_type${index}`) ?? ''
    const value = query.get(`${place}_record${index}`) ?? ''
    const host = place === 'main' ? '' : (query.get(`subdomain${index}`) ?? '')
    if (type === '' || type !== type.toLowerCase()) return 'invalid record type'
    if (value === '') return 'if record_type is entered, record must be entered'
    if (type === 'a' && !isIPv4(value)) return 'invalid ip address'
    const extra = query.get(`${place}_recordx${index}`) ?? ''
    if (type === 'mx' && !/^\d+$/.test(extra)) return 'invalid mx distance'
    records.push({ host, type: type.toUpperCase(), value, extra })
  }
  return records
}

/**
 * A double of what is known of Dynadot's API: the key in the query, HTTP 200 for errors too, the whole record set
 * replaced, one request at a time for the account (another is told that it is busy), limits. An order that came has its
 * effect after the delay even when the client has left by then. Unknown and guessed: the texts of errors, that an empty
 * set is taken, that set_dns2 without a TTL means 300.
 */
export const startDynadotDouble = async ({
  domains,
  apiKey,
  delayMs = 0,
}: DynadotDoubleOptions): Promise<DynadotDouble> => {
  const states = new Map(domains.map(name => [name, fresh]))
  const earlier = new Map(states)
  const faults: { command: DynadotCommand; fault: DynadotFault }[] = []
  const calls = { get_dns: 0, set_dns2: 0, busy: 0, other: 0 }
  const sockets = new Set<Socket>()
  let isBusy = false

  const takeFault = (command: string): DynadotFault | undefined => {
    const index = faults.findIndex(fault => fault.command === command)
    return index < 0 ? undefined : faults.splice(index, 1)[0]?.fault
  }

  const perform = (command: DynadotCommand, query: URLSearchParams, fault: DynadotFault | undefined): unknown => {
    const name = query.get('domain') ?? ''
    const state = states.get(name)
    const envelope = command === 'get_dns' ? 'GetDnsResponse' : 'SetDnsResponse'
    if (!state) return error(envelope, 'could not find domain in your account')
    if (command === 'get_dns') return got(fault === 'stale' ? (earlier.get(name) ?? state) : state)
    const main = givenOf(query, 'main')
    const sub = givenOf(query, 'sub')
    if (typeof main === 'string') return error(envelope, main)
    if (typeof sub === 'string') return error(envelope, sub)
    earlier.set(name, state)
    states.set(name, { mode: 'Dynadot DNS', ttl: query.get('ttl') ?? '300', main, sub })
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
    try {
      const fault = takeFault(command)
      if (delayMs > 0) await new Promise(resolve => setTimeout(resolve, delayMs))
      if (fault === 'no answer, no effect') return await left
      if (fault === 'busy') return send(busy)
      if (typeof fault === 'object') {
        if ('error' in fault) return send(error(envelope, fault.error))
        const headers: Record<string, string> = fault.retryAfter ? { 'Retry-After': fault.retryAfter } : {}
        return send('trouble', fault.status, headers)
      }
      const answer = perform(command, query, fault)
      if (fault === 'no answer, with effect') return await left
      const text = JSON.stringify(answer)
      // The account is free before the client can know that it is.
      isBusy = false
      if (fault === 'half text') return send(text.slice(0, text.length / 2))
      if (fault === 'half content') return send({ [envelope]: { ResponseCode: 0, Status: 'success' } })
      return send(answer)
    } finally {
      isBusy = false
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
      states.set(name, { ...(states.get(name) ?? fresh), ...part })
    },
    fail: (command, fault) => void faults.push({ command, fault }),
    calls,
    resetCalls: () => void Object.assign(calls, { get_dns: 0, set_dns2: 0, busy: 0, other: 0 }),
    stop,
    start: () => listen(port),
    [Symbol.asyncDispose]: stop,
  }
}

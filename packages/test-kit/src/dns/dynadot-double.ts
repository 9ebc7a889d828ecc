import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { isIPv4, type Socket } from 'node:net'
import { freePort } from '@pool/dev/ports'

/** A record as get_dns returns it and set_dns2 accepts it. `host` is empty in `main`. */
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
  /** Seconds, as text. Empty: none. */
  readonly ttl: string
  readonly main: readonly DoubleRecord[]
  readonly sub: readonly DoubleRecord[]
}

const MAX_RECORDS = { main: 20, sub: 100 }

const INITIAL_DOMAIN: DoubleDomain = { mode: 'Dynadot DNS', ttl: '3600', main: [], sub: [] }

export const createErrorResponse = (envelope: string, text: string) => ({
  [envelope]: { ResponseCode: '-1', Status: 'error', Error: text },
})

const toWireRecords = (records: readonly DoubleRecord[], place: 'main' | 'sub') =>
  records.map(({ host, type, value, extra }) => ({
    ...(place === 'sub' ? { Subhost: host } : {}),
    RecordType: type,
    Value: value,
    ...(extra === '' ? {} : { Value2: extra }),
  }))

const createGetDnsResponse = ({ mode, ttl, main, sub }: DoubleDomain) => ({
  GetDnsResponse: {
    ResponseCode: 0,
    Status: 'success',
    GetDns: {
      NameServerSettings: {
        Type: mode,
        ...(main.length > 0 ? { MainDomains: toWireRecords(main, 'main') } : {}),
        ...(sub.length > 0 ? { SubDomains: toWireRecords(sub, 'sub') } : {}),
        ...(ttl === '' ? {} : { TTL: ttl }),
      },
    },
  },
})

/** The records of a request, or the reason why Dynadot rejects them. */
export const parseRecords = (
  query: URLSearchParams,
  place: 'main' | 'sub',
  validateRecord: (record: DoubleRecord) => string | undefined,
): DoubleRecord[] | string => {
  const records: DoubleRecord[] = []
  const indices = Array.from(query.keys()).flatMap(
    name => new RegExp(`^${place}_record_type(\\d+)$`).exec(name)?.[1] ?? [],
  )
  for (const index of indices.map(Number).sort((a, b) => a - b)) {
    if (index >= MAX_RECORDS[place]) return `only ${MAX_RECORDS[place]} ${place} records can be set`
    const type = query.get(`${place}_record_type${index}`) ?? ''
    const value = query.get(`${place}_record${index}`) ?? ''
    const host = place === 'main' ? '' : (query.get(`subdomain${index}`) ?? '')
    if (type === '' || type !== type.toLowerCase()) return 'invalid record type'
    if (value === '') return 'if record_type is entered, record must be entered'
    if (type === 'a' && !isIPv4(value)) return 'invalid ip address'
    const extra = query.get(`${place}_recordx${index}`) ?? ''
    if (type === 'mx' && !/^\d+$/.test(extra)) return 'invalid mx distance'
    const record = { host, type: type.toUpperCase(), value, extra }
    const rejection = validateRecord(record)
    if (rejection !== undefined) return rejection
    records.push(record)
  }
  return records
}

export type DynadotCommand = 'get_dns' | 'set_dns2'

/** A fault of one call. Without a response, the account is busy until the client disconnects, unless noted otherwise. */
export type DynadotFault =
  | 'no response, no effect'
  | 'no response, with effect'
  /**
   * get_dns returns the state before the last change. Never twice in a row for a domain: the
   * next get_dns returns the current state even if it has this fault too.
   */
  | 'stale'
  /** No response. The effect happens when this promise settles. Until then the account is busy, even if the client disconnects. */
  | { readonly effectAfter: Promise<unknown> }
  /** The first half of the response body. */
  | 'truncated body'
  /** A success without settings. */
  | 'missing settings'
  | 'busy'
  /** An HTTP error without an effect. */
  | { readonly status: number; readonly retryAfter?: string }
  /** Dynadot's error envelope with this text, without an effect. */
  | { readonly error: string }

export interface DynadotDoubleOptions {
  readonly domains: readonly string[]
  readonly apiKey: string
  /** Duration of a call in milliseconds. */
  readonly delayMs?: number
  /** Called for each call without a fault scheduled by `fail`. */
  readonly nextFault?: (command: DynadotCommand) => DynadotFault | undefined
  /** An additional reason why set_dns2 rejects this record. */
  readonly validateRecord?: (record: DoubleRecord) => string | undefined
}

/** Call counts. */
export interface DynadotCounts {
  /** Accepted calls, with or without a response. */
  get_dns: number
  set_dns2: number
  /** Rejected because another request was in flight. */
  busy: number
  /** Rejected because the command is unknown. */
  other: number
  /** Responses with a stale state. */
  stale: number
  /** Calls of set_dns2 that replaced the record set. */
  effects: number
}

/** Dynadot's API 3 (JSON) for one account, on a loopback port. */
export interface DynadotDouble extends AsyncDisposable {
  readonly url: string
  /** The current state of a domain. */
  domain(name: string): DoubleDomain
  /** Changes a domain without using the API. */
  change(name: string, part: Partial<DoubleDomain>): void
  /** Schedules a fault for the next call of `command` without one. */
  fail(command: DynadotCommand, fault: DynadotFault): void
  readonly calls: Readonly<DynadotCounts>
  /** When each call since the last reset arrived, by the clock of `performance.now`. */
  readonly arrivals: readonly number[]
  resetCalls(): void
  /** Resets open connections and refuses new ones until `start`, which uses the same port. */
  stop(): Promise<void>
  start(): Promise<void>
}

const NO_CALLS: DynadotCounts = { get_dns: 0, set_dns2: 0, busy: 0, other: 0, stale: 0, effects: 0 }

/**
 * A double of the known behavior of Dynadot's API: the key is in the query; errors have HTTP 200; each write replaces
 * the record set; an account has one request in flight, and others get `system_busy`; limits. A received request has its
 * effect after the delay even if the client has disconnected. Guessed: most error texts; an empty set is
 * accepted; set_dns2 without a TTL means 300; an account stays busy while an aborted call
 * executes. Not implemented: the conflict of a CNAME with other records, and the option to add to the set.
 */
export const startDynadotDouble = async ({
  domains,
  apiKey,
  delayMs = 0,
  nextFault = () => undefined,
  validateRecord = () => undefined,
}: DynadotDoubleOptions): Promise<DynadotDouble> => {
  const states = new Map(domains.map(name => [name, INITIAL_DOMAIN]))
  const previousStates = new Map(states)
  const faults: { command: DynadotCommand; fault: DynadotFault }[] = []
  const staleDomains = new Set<string>()
  const calls = { ...NO_CALLS }
  const arrivals: number[] = []
  const sockets = new Set<Socket>()
  let isBusy = false

  const takeFault = (command: DynadotCommand): DynadotFault | undefined => {
    const index = faults.findIndex(fault => fault.command === command)
    return index < 0 ? nextFault(command) : faults.splice(index, 1)[0]?.fault
  }

  const setState = (name: string, next: DoubleDomain): void => {
    previousStates.set(name, states.get(name) ?? INITIAL_DOMAIN)
    states.set(name, next)
  }

  /** The state that get_dns returns. */
  const readState = (name: string, state: DoubleDomain, isStale: boolean): DoubleDomain => {
    const wasStale = staleDomains.delete(name)
    if (!isStale || wasStale) return state
    staleDomains.add(name)
    calls.stale += 1
    return previousStates.get(name) ?? state
  }

  const perform = (command: DynadotCommand, query: URLSearchParams, fault: DynadotFault | undefined): unknown => {
    const name = query.get('domain') ?? ''
    const state = states.get(name)
    const envelope = command === 'get_dns' ? 'GetDnsResponse' : 'SetDnsResponse'
    if (!state) return createErrorResponse(envelope, 'could not find domain in your account')
    if (command === 'get_dns') return createGetDnsResponse(readState(name, state, fault === 'stale'))
    const main = parseRecords(query, 'main', validateRecord)
    const sub = parseRecords(query, 'sub', validateRecord)
    if (typeof main === 'string') return createErrorResponse(envelope, main)
    if (typeof sub === 'string') return createErrorResponse(envelope, sub)
    setState(name, { mode: 'Dynadot DNS', ttl: query.get('ttl') ?? '300', main, sub })
    calls.effects += 1
    return { SetDnsResponse: { ResponseCode: 0, Status: 'success' } }
  }

  const handle = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const disconnected = new Promise<void>(resolve => response.once('close', resolve))
    const query = new URL(request.url ?? '', 'http://double').searchParams
    const command = query.get('command')
    const send = (body: unknown, status = 200, headers: Record<string, string> = {}) => {
      const text = typeof body === 'string' ? body : JSON.stringify(body)
      response.writeHead(status, { 'Content-Type': 'application/json', ...headers }).end(text)
    }
    if (query.get('key') !== apiKey) return send(createErrorResponse('Response', 'invalid key'))
    arrivals.push(performance.now())
    if (command !== 'get_dns' && command !== 'set_dns2') {
      calls.other += 1
      return send(createErrorResponse('Response', 'invalid command'))
    }
    const envelope = command === 'get_dns' ? 'GetDnsResponse' : 'SetDnsResponse'
    const busy = { [envelope]: { ResponseCode: '5', Status: 'system_busy' } }
    if (isBusy) {
      calls.busy += 1
      return send(busy)
    }
    isBusy = true
    calls[command] += 1
    let isInFlight = true
    const end = () => {
      if (isInFlight) isBusy = false
      isInFlight = false
    }
    try {
      const fault = takeFault(command)
      if (delayMs > 0) await new Promise(resolve => setTimeout(resolve, delayMs))
      if (fault === 'no response, no effect') return await disconnected
      if (fault === 'busy') return send(busy)
      if (typeof fault === 'object' && 'effectAfter' in fault) {
        await fault.effectAfter
        perform(command, query, undefined)
        end()
        return await disconnected
      }
      if (typeof fault === 'object') {
        if ('error' in fault) return send(createErrorResponse(envelope, fault.error))
        const headers: Record<string, string> = fault.retryAfter ? { 'Retry-After': fault.retryAfter } : {}
        return send('Service Unavailable', fault.status, headers)
      }
      const answer = perform(command, query, fault)
      if (fault === 'no response, with effect') return await disconnected
      const text = JSON.stringify(answer)
      // Before the response, so that the account is not busy for a client that has received it.
      end()
      if (fault === 'truncated body') return send(text.slice(0, text.length / 2))
      if (fault === 'missing settings') return send({ [envelope]: { ResponseCode: 0, Status: 'success' } })
      return send(answer)
    } finally {
      end()
    }
  }

  // 100 records exceed Node's default limit of 16 KiB for the request line and headers.
  const server = createServer({ maxHeaderSize: 256 * 1_024 }, (request, response) => {
    handle(request, response).catch(() => response.destroy())
  })
  server.on('connection', socket => {
    sockets.add(socket)
    socket.once('close', () => sockets.delete(socket))
  })
  // The system must not assign the port to another socket while the double is stopped.
  const port = await freePort()
  const listen = async () => {
    server.listen(port, '127.0.0.1')
    await once(server, 'listening')
  }
  const stop = async () => {
    if (!server.listening) return
    const closed = new Promise(resolve => server.close(resolve))
    for (const socket of sockets) socket.destroy()
    await closed
  }
  await listen()

  return {
    url: `http://127.0.0.1:${port}/api3.json`,
    domain: name => states.get(name) ?? INITIAL_DOMAIN,
    change(name, part) {
      setState(name, { ...(states.get(name) ?? INITIAL_DOMAIN), ...part })
    },
    fail: (command, fault) => void faults.push({ command, fault }),
    calls,
    arrivals,
    resetCalls() {
      Object.assign(calls, NO_CALLS)
      arrivals.length = 0
    },
    stop,
    start: listen,
    [Symbol.asyncDispose]: stop,
  }
}

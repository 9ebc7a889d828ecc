import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { isIPv4, isIPv6 } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import { domainToASCII, domainToUnicode } from 'node:url'
import { freePort } from '@pool/dev/ports'

/** Kinds of call: the search for a zone's id, a list of records, a batch. */
export type CallKind = 'zones' | 'list' | 'batch'

/** A fault of one call. Every error quotes the Authorization header, which is the worst case for secrets. */
export type CloudflareFault =
  /** This response, without an effect. A string `body` is sent unchanged, an object as JSON. Default: an error envelope. */
  | { readonly kind: 'status'; readonly status: number; readonly body?: unknown; readonly retryAfter?: string }
  /** No response and no effect. */
  | { readonly kind: 'hang-before' }
  /** An effect but no response. */
  | { readonly kind: 'hang-after' }
  /** An effect, then the connection is reset. */
  | { readonly kind: 'break-after' }
  /** A list as it was before the last change of the zone. */
  | { readonly kind: 'stale' }
  /** Runs `before` before the call, as a concurrent writer would. */
  | { readonly kind: 'concurrent-write'; readonly before: () => void }

/** A record as the API shows it. */
export interface WireRecord {
  readonly id: string
  readonly name: string
  readonly type: string
  readonly content: string
  readonly ttl: number
  readonly proxied: boolean
  readonly priority?: number
  readonly data?: Readonly<Record<string, unknown>>
  readonly comment: string | null
  readonly tags: readonly string[]
}

export interface Call {
  readonly kind: CallKind
  readonly query: Readonly<Record<string, string>>
  /** The number of operations in each list of a batch, such as `{ posts: 2 }`. Empty for other calls. */
  readonly operations: Readonly<Record<string, number>>
  readonly status: number
}

export interface CloudflareDoubleOptions {
  readonly token?: string
  /** Maximum number of records on a page, even if more are requested. Default: 5000. */
  readonly maxPageSize?: number
  /** Milliseconds before each response. */
  readonly delayMs?: number
  /** Whether errors of batches point to the operation. Default: false, because this is not documented. */
  readonly hasPointers?: boolean
}

/**
 * The DNS records part of Cloudflare's API v4, in this process on a loopback port.
 *
 *     await using double = await startCloudflareDouble()
 *     double.addZone('pool.example')                     // plan 'free': 200 operations in a batch
 *     createCloudflareProvider({ url: double.url, apiToken: double.token })
 *     double.schedule('batch', { kind: 'hang-after' })   // for the next batch; faults of one kind queue
 *     double.limitRate(30)                               // 429 with `Retry-After: 30`, until limitRate(undefined)
 *     double.count('batch')                              // calls so far, including rejected ones
 */
export interface CloudflareDouble extends AsyncDisposable {
  readonly url: string
  readonly token: string
  readonly calls: readonly Call[]
  readonly count: (kind?: CallKind) => number
  readonly resetCalls: () => void
  /** The largest number of batches in progress that were not for deletions alone, as a check of the token is. */
  readonly maxConcurrentBatches: () => number
  /** Creates a zone and returns its id. Replaces an existing zone of this name. */
  readonly addZone: (name: string, plan?: 'free' | 'pro', type?: 'full' | 'secondary') => string
  /** Default: `active`. */
  readonly setStatus: (name: string, status: string) => void
  /** The number of records that the zone may have. */
  readonly setQuota: (name: string, records: number) => void
  readonly deleteZone: (name: string) => void
  readonly records: (zone: string) => readonly WireRecord[]
  /** Bypasses the API and its rules. */
  readonly put: (zone: string, record: Partial<WireRecord> & Pick<WireRecord, 'name' | 'type'>) => void
  /** Replaces all records of the zone by address records. */
  readonly fill: (zone: string, records: Iterable<readonly [name: string, address: string]>) => void
  readonly remove: (zone: string, matches: (record: WireRecord) => boolean) => void
  readonly schedule: (kind: CallKind, fault: CloudflareFault) => void
  readonly limitRate: (retryAfterSeconds: number | undefined) => void
  readonly delay: (ms: number) => void
  /** Resets open connections and refuses new ones until `start`, which uses the same port. */
  readonly stop: () => Promise<void>
  readonly start: () => Promise<void>
}

interface Zone {
  readonly id: string
  readonly name: string
  readonly plan: 'free' | 'pro'
  readonly type: 'full' | 'secondary'
  quota: number
  records: readonly WireRecord[]
  previous: readonly WireRecord[]
}

interface ApiResponse {
  readonly status: number
  readonly body: unknown
  readonly headers?: Readonly<Record<string, string>>
}

type Fields = Readonly<Record<string, unknown>>

class ApiError extends Error {
  readonly status: number
  readonly code: number
  readonly pointer: string | undefined
  constructor(status: number, code: number, message: string, pointer?: string) {
    super(message)
    this.status = status
    this.code = code
    this.pointer = pointer
  }
}

const newId = (): string => randomBytes(16).toString('hex')
const isFields = (value: unknown): value is Fields => typeof value === 'object' && value !== null
const toFieldsList = (value: unknown): readonly Fields[] => (Array.isArray(value) ? value.filter(isFields) : [])

const createErrorResponse = (status: number, code: number, message: string, pointer?: string): ApiResponse => {
  const source = pointer === undefined ? {} : { source: { pointer } }
  return { status, body: { success: false, errors: [{ code, message, ...source }], messages: [], result: null } }
}

const toContent = (type: string, fields: Fields): string => {
  const data = isFields(fields.data) ? fields.data : {}
  if (type === 'SRV') {
    for (const part of ['priority', 'weight', 'port', 'target'])
      if (data[part] === undefined) throw new ApiError(400, 9101, `${part} is a required data field.`)
    return `${data.weight} ${data.port} ${data.target}`
  }
  if (type === 'DS') return `${data.key_tag} ${data.algorithm} ${data.digest_type} ${data.digest}`
  if (type === 'CAA') return `${data.flags} ${data.tag} "${data.value}"`
  const content = String(fields.content ?? '')
  if (type === 'A' && !isIPv4(content))
    throw new ApiError(400, 9005, 'Content for A record must be a valid IPv4 address.')
  if (type === 'AAAA' && !isIPv6(content))
    throw new ApiError(400, 9006, 'Content for AAAA record must be a valid IPv6 address.')
  if (['CNAME', 'MX', 'NS'].includes(type) && !/^[a-z0-9_.-]+$/i.test(content))
    throw new ApiError(400, 9007, `Content for ${type} record is invalid.`)
  return content
}

/** The record as the API returns it. As at Cloudflare, a name outside the zone is relative to the zone. */
const toRecord = (zone: Zone, fields: Fields, id: string): WireRecord => {
  const requestedName = String(fields.name ?? '').toLowerCase()
  const name =
    requestedName === zone.name || requestedName.endsWith(`.${zone.name}`)
      ? requestedName
      : `${requestedName}.${zone.name}`
  const type = String(fields.type ?? '')
  if (name.length > 253 || name.split('.').some(label => label === '' || label.length > 63))
    throw new ApiError(400, 9000, 'DNS name is invalid.')
  const proxied = fields.proxied === true
  const ttl = proxied ? 1 : Number(fields.ttl ?? 1)
  if (ttl !== 1 && !(ttl >= 60 && ttl <= 86_400))
    throw new ApiError(400, 9021, 'TTL must be between 60 and 86400 seconds, or 1 for Automatic.')
  return {
    id,
    name,
    type,
    content: toContent(type, fields),
    ttl,
    proxied,
    ...(typeof fields.priority === 'number' ? { priority: fields.priority } : {}),
    ...(isFields(fields.data) ? { data: fields.data } : {}),
    comment: typeof fields.comment === 'string' ? fields.comment : null,
    tags: Array.isArray(fields.tags) ? fields.tags.map(String) : [],
  }
}

const assertNoConflict = (records: Iterable<WireRecord>, wanted: WireRecord): void => {
  for (const record of records) {
    if (record.name !== wanted.name || record.id === wanted.id) continue
    if (wanted.type === 'CNAME')
      throw new ApiError(400, 81_053, 'An A, AAAA, or CNAME record with that host already exists.')
    if (record.type === 'CNAME') throw new ApiError(400, 81_054, 'A CNAME record with that host already exists.')
    if (record.type === wanted.type && record.content === wanted.content && record.priority === wanted.priority)
      throw new ApiError(400, 81_058, 'An identical record already exists.')
  }
}

const batchLimit = { free: 200, pro: 3_500 }
const operationLists = ['deletes', 'patches', 'puts', 'posts'] as const

/** Executes the lists in this order, all or nothing. */
const runBatch = (zone: Zone, body: Fields): Fields => {
  const size = operationLists.reduce((sum, key) => sum + toFieldsList(body[key]).length, 0)
  // The code is a guess: the documentation has the limit but not the error.
  if (size > batchLimit[zone.plan]) throw new ApiError(400, 9_999, 'There are too many operations in the batch.')
  const draft = new Map(zone.records.map(record => [record.id, record]))
  const byName = Map.groupBy(zone.records, record => record.name)
  const store = (record: WireRecord): WireRecord => {
    const here = (byName.get(record.name) ?? []).filter(other => other.id !== record.id)
    assertNoConflict(here, record)
    byName.set(record.name, [...here, record])
    draft.set(record.id, record)
    return record
  }
  const getRecord = (fields: Fields): WireRecord => {
    const record = draft.get(String(fields.id))
    if (!record) throw new ApiError(404, 81_044, 'Record does not exist.')
    return record
  }
  const run: Readonly<Record<(typeof operationLists)[number], (fields: Fields) => WireRecord>> = {
    deletes: fields => {
      const record = getRecord(fields)
      draft.delete(record.id)
      byName.set(
        record.name,
        (byName.get(record.name) ?? []).filter(other => other.id !== record.id),
      )
      return record
    },
    patches: fields => {
      const record = getRecord(fields)
      return store(toRecord(zone, { ...record, ...fields }, record.id))
    },
    puts: fields => store(toRecord(zone, fields, getRecord(fields).id)),
    posts: fields => store(toRecord(zone, fields, newId())),
  }
  const result: Record<string, WireRecord[]> = {}
  for (const key of operationLists) {
    result[key] = toFieldsList(body[key]).map((fields, i) => {
      try {
        return run[key](fields)
      } catch (error) {
        if (error instanceof ApiError) throw new ApiError(error.status, error.code, error.message, `/${key}/${i}`)
        throw error
      }
    })
  }
  if (draft.size > Math.max(zone.quota, zone.records.length))
    throw new ApiError(400, 81_045, 'The record quota has been exceeded.')
  zone.previous = zone.records
  zone.records = Array.from(draft.values())
  return result
}

/** By the records of a zone, which never change in place. A large zone has many pages. */
const sortedRecords = new WeakMap<readonly WireRecord[], readonly WireRecord[]>()

const sortRecords = (records: readonly WireRecord[]): readonly WireRecord[] => {
  const sorted =
    sortedRecords.get(records) ??
    records.toSorted((a, b) => (a.name < b.name ? -1 : a.name > b.name ? 1 : a.id < b.id ? -1 : 1))
  sortedRecords.set(records, sorted)
  return sorted
}

const listPage = (records: readonly WireRecord[], query: URLSearchParams, largestPage: number): unknown => {
  const suffix = query.get('name.endswith')?.toLowerCase()
  const exact = query.get('name.exact')?.toLowerCase()
  const sorted = sortRecords(records)
  const isEverything = suffix === undefined && exact === undefined
  const found = isEverything
    ? sorted
    : sorted.filter(
        ({ name }) => (suffix === undefined || name.endsWith(suffix)) && (exact === undefined || name === exact),
      )
  const perPage = Math.min(Number(query.get('per_page') ?? 100), largestPage)
  const page = Number(query.get('page') ?? 1)
  const slice = found.slice((page - 1) * perPage, page * perPage)
  const result = slice.map(record =>
    record.name.includes('xn--') ? { ...record, name: domainToUnicode(record.name) } : record,
  )
  const info = { page, per_page: perPage, count: result.length, total_count: found.length }
  const total_pages = Math.ceil(found.length / perPage)
  return { success: true, errors: [], messages: [], result, result_info: { ...info, total_pages } }
}

const readBody = async (request: IncomingMessage): Promise<Fields> => {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(Buffer.from(chunk))
  const body: unknown = chunks.length > 0 ? JSON.parse(Buffer.concat(chunks).toString('utf8')) : {}
  return isFields(body) ? body : {}
}

export const startCloudflareDouble = async (options: CloudflareDoubleOptions = {}): Promise<CloudflareDouble> => {
  const {
    token = `cf-${randomBytes(20).toString('hex')}`,
    maxPageSize: largestPage = 5_000,
    hasPointers = false,
  } = options
  const zones = new Map<string, Zone>()
  const statuses = new Map<string, string>()
  const calls: Call[] = []
  const faults: Record<CallKind, CloudflareFault[]> = { zones: [], list: [], batch: [] }
  const batches = { current: 0, max: 0 }
  let delayMs = options.delayMs ?? 0
  let retryAfter: number | undefined

  const getZone = (name: string): Zone => {
    const zone = zones.get(name)
    if (!zone) throw new Error(`The double has no zone ${name}.`)
    return zone
  }

  const createResponse = (
    kind: CallKind,
    request: IncomingMessage,
    url: URL,
    body: Fields,
    isStale: boolean,
  ): ApiResponse => {
    if (retryAfter !== undefined) {
      const limited = createErrorResponse(429, 971, 'Please wait and consider throttling your request speed')
      return { ...limited, headers: { 'Retry-After': String(retryAfter) } }
    }
    const { authorization } = request.headers
    if (!authorization?.startsWith('Bearer ')) return createErrorResponse(400, 6003, 'Invalid request headers')
    if (authorization !== `Bearer ${token}`)
      return kind === 'zones'
        ? createErrorResponse(403, 9109, 'Invalid access token')
        : createErrorResponse(403, 10_000, 'Authentication error')
    if (kind === 'zones') {
      const [, suffix, exact = ''] = /^(?:ends_with:(.*)|(.*))$/.exec(url.searchParams.get('name') ?? '') ?? []
      const isAsked = (name: string) =>
        suffix === undefined ? name === domainToASCII(exact) : domainToUnicode(name).endsWith(suffix)
      const named = Array.from(zones.values()).filter(zone => isAsked(zone.name))
      const result = named.map(({ plan, id, name, type }) => ({
        // As users report, in Unicode.
        ...{ id, name: domainToUnicode(name), type, status: statuses.get(name) ?? 'active' },
        plan: { legacy_id: plan },
      }))
      const total = { count: result.length, total_count: result.length, total_pages: 1 }
      const result_info = { page: 1, per_page: 50, ...total }
      return { status: 200, body: { success: true, errors: [], messages: [], result, result_info } }
    }
    const id = url.pathname.split('/')[4]
    const zone = Array.from(zones.values()).find(candidate => candidate.id === id)
    if (!zone) {
      const path = url.pathname.replace('/client/v4', '')
      return createErrorResponse(404, 7003, `Could not route to ${path}, perhaps your object identifier is invalid?`)
    }
    if (kind === 'list')
      return { status: 200, body: listPage(isStale ? zone.previous : zone.records, url.searchParams, largestPage) }
    try {
      return { status: 200, body: { success: true, errors: [], messages: [], result: runBatch(zone, body) } }
    } catch (error) {
      if (!(error instanceof ApiError)) throw error
      return createErrorResponse(error.status, error.code, error.message, hasPointers ? error.pointer : undefined)
    }
  }

  const quoteHeader = (body: unknown, header: string | undefined): unknown =>
    isFields(body) && Array.isArray(body.errors)
      ? {
          ...body,
          errors: toFieldsList(body.errors).map(error => ({ ...error, message: `${error.message} [${header}]` })),
        }
      : body

  const toCallKind = (method: string, path: string): CallKind | undefined => {
    if (method === 'GET' && path === '/client/v4/zones') return 'zones'
    if (method === 'GET' && /^\/client\/v4\/zones\/[^/]+\/dns_records$/.test(path)) return 'list'
    if (method === 'POST' && /^\/client\/v4\/zones\/[^/]+\/dns_records\/batch$/.test(path)) return 'batch'
    return undefined
  }

  const serve = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const url = new URL(request.url ?? '/', 'http://double')
    const body = await readBody(request)
    const kind = toCallKind(request.method ?? '', url.pathname)
    const fault = kind && faults[kind].shift()
    if (kind === 'batch' && operationLists.some(key => key !== 'deletes' && toFieldsList(body[key]).length > 0)) {
      batches.current += 1
      batches.max = Math.max(batches.max, batches.current)
      response.once('close', () => {
        batches.current -= 1
      })
    }
    const createResult = (): ApiResponse => {
      if (!kind) return createErrorResponse(404, 7000, 'No route for that URI')
      if (fault?.kind === 'concurrent-write') fault.before()
      if (fault?.kind === 'status') {
        const plain = createErrorResponse(fault.status, 10_001, 'Service temporarily unavailable')
        const headers = fault.retryAfter === undefined ? {} : { 'Retry-After': fault.retryAfter }
        return { status: fault.status, body: fault.body ?? plain.body, headers }
      }
      return createResponse(kind, request, url, body, fault?.kind === 'stale')
    }
    const {
      status,
      body: responseBody,
      headers = {},
    } = fault?.kind === 'hang-before' ? { status: 0, body: '' } : createResult()
    if (kind) {
      const counts = operationLists.map(key => [key, toFieldsList(body[key]).length] as const)
      const operations = Object.fromEntries(counts.filter(([, count]) => count > 0))
      calls.push({ kind, query: Object.fromEntries(url.searchParams), operations, status })
    }
    if (fault?.kind === 'hang-before' || fault?.kind === 'hang-after') return
    if (fault?.kind === 'break-after') {
      request.socket.destroy()
      return
    }
    if (delayMs > 0) await pause(delayMs)
    response.writeHead(status, { 'Content-Type': 'application/json', ...headers })
    response.end(
      typeof responseBody === 'string'
        ? responseBody
        : JSON.stringify(quoteHeader(responseBody, request.headers.authorization)),
    )
  }

  // A client that disconnects during its request is not an error of the double.
  const server = createServer((request, response) => void serve(request, response).catch(() => response.destroy()))
  // The system must not assign the port to another socket while the double is stopped.
  const port = await freePort()
  const listen = async () => {
    server.listen(port, '127.0.0.1')
    await once(server, 'listening')
  }
  const stop = () =>
    new Promise<void>(resolve => {
      server.close(() => resolve())
      server.closeAllConnections()
    })
  await listen()

  const change = (zone: Zone, records: readonly WireRecord[]): void => {
    zone.previous = zone.records
    zone.records = records
  }

  return {
    url: `http://127.0.0.1:${port}/client/v4`,
    token,
    calls,
    count: kind => calls.filter(call => kind === undefined || call.kind === kind).length,
    resetCalls: () => calls.splice(0),
    maxConcurrentBatches: () => batches.max,
    addZone: (name, plan = 'free', type = 'full') => {
      const zone = { id: newId(), name, plan, type, quota: Number.POSITIVE_INFINITY, records: [], previous: [] }
      zones.set(name, zone)
      return zone.id
    },
    setStatus: (name, status) => void statuses.set(name, status),
    setQuota: (name, records) => {
      getZone(name).quota = records
    },
    deleteZone: name => void zones.delete(name),
    records: zone => getZone(zone).records,
    put: (name, record) => {
      const zone = getZone(name)
      const full = { id: newId(), content: '', ttl: 1, proxied: false, comment: null, tags: [], ...record }
      change(zone, [...zone.records, full])
    },
    fill: (name, records) => {
      const defaults = { type: 'A', ttl: 300, proxied: false, comment: null, tags: [] }
      change(
        getZone(name),
        Array.from(records, ([owner, content]) => ({ id: newId(), name: owner, content, ...defaults })),
      )
    },
    remove: (name, matches) => {
      const zone = getZone(name)
      change(
        zone,
        zone.records.filter(record => !matches(record)),
      )
    },
    schedule: (kind, fault) => void faults[kind].push(fault),
    limitRate: seconds => {
      retryAfter = seconds
    },
    delay: ms => {
      delayMs = ms
    },
    stop: stop,
    start: listen,
    [Symbol.asyncDispose]: async () => {
      if (server.listening) await stop()
    },
  }
}

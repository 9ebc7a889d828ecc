import { createServer, type IncomingMessage } from 'node:http'
import { listenOnLoopback } from '@pool/dev/ports'
import { ApiError } from '@pool/test-kit/terraform/resource.ts'
import { type Attributes, isObject, isText, type Value } from '@pool/test-kit/terraform/schema.ts'
import type { Account } from './account.ts'
import { parseMigration, readComputed, readMetadata, toObjectNamespaceId } from './cloudflare.ts'

/** The HTTP API of Cloudflare for some accounts: the routes that the four resources and the data source use. */
export interface CloudflareApi {
  /** The value of CLOUDFLARE_BASE_URL. */
  readonly url: string
  /** `PUT /workers/scripts/lease-witness 200`, without the account, in the order of the responses. */
  readonly requests: readonly string[]
  /** Requests with a route, a field or a type that this double does not know. A test with one of them proves nothing. */
  readonly unknown: readonly string[]
  stop(): void
}

interface Options {
  /** By id. The token may access these accounts. */
  readonly accounts: ReadonlyMap<string, Account>
  readonly token: string
}

interface Call {
  readonly account: Account
  /** The variable parts of the path. */
  readonly parts: readonly string[]
  readonly headers: IncomingMessage['headers']
  readonly body: Buffer
  /** Records what this double does not know. */
  reject(what: string): never
}

/** A response that is not JSON: the content of a script. */
class Content {
  readonly text: string

  constructor(text: string) {
    this.text = text
  }
}

type Handler = (call: Call) => Promise<unknown> | unknown

const BOUNDARY = 'cloudflare-api-double'
const FIRST_UPLOAD_MS = 7

const envelope = (result: unknown) => ({ success: true, errors: [], messages: [], result })

const parseJson = (text: string): Attributes => {
  try {
    const value: Value = JSON.parse(text)
    if (isObject(value)) return value
  } catch {}
  throw new ApiError('400 Bad Request (10007)', 'Could not parse the request body as a JSON object.')
}

const acceptFields = (value: Attributes, known: readonly string[], path: string, { reject }: Call): void => {
  for (const field of Object.keys(value)) if (!known.includes(field)) reject(`field ${path}${field}`)
}

const requireTexts = (value: Attributes, fields: readonly string[]): void => {
  for (const field of fields) {
    if (!isText(value[field]) || value[field] === '')
      throw new ApiError('400 Bad Request (10021)', `${field} is missing`)
  }
}

const readJson = (call: Call, required: readonly string[], optional: readonly string[] = []): Attributes => {
  if (call.headers['content-type'] !== 'application/json') call.reject(`content type ${call.headers['content-type']}`)
  const value = parseJson(call.body.toString())
  acceptFields(value, [...required, ...optional], '', call)
  return value
}

/** The fields of each type of binding beside its name and type. */
const bindingFields: Readonly<Record<string, readonly string[]>> = {
  analytics_engine: ['dataset'],
  durable_object_namespace: ['class_name'],
  kv_namespace: ['namespace_id'],
  plain_text: ['text'],
  ratelimit: ['namespace_id', 'simple'],
  secret_text: ['text'],
  secrets_store_secret: ['store_id', 'secret_name'],
}

const checkBindings = (bindings: Value | undefined, call: Call): Attributes[] => {
  if (bindings === undefined) return []
  if (!Array.isArray(bindings)) throw new ApiError('400 Bad Request (10021)', 'bindings must be a list')
  const names = new Set<unknown>()
  return bindings.map(binding => {
    if (!isObject(binding)) throw new ApiError('400 Bad Request (10021)', 'a binding must be an object')
    requireTexts(binding, ['name', 'type'])
    const fields = bindingFields[String(binding.type)] ?? call.reject(`binding type ${binding.type}`)
    acceptFields(binding, ['name', 'type', ...fields], 'bindings.', call)
    requireTexts(
      binding,
      fields.filter(field => field !== 'simple'),
    )
    if (names.has(binding.name)) {
      throw new ApiError('400 Bad Request (10020)', `Binding name '${binding.name}' is used more than once.`)
    }
    names.add(binding.name)
    return binding
  })
}

const readForm = async ({ headers, body }: Call): Promise<FormData> => {
  try {
    // A multipart body names the type and the boundary of its own parts.
    return await new Response(new Uint8Array(body), {
      headers: { 'content-type': headers['content-type'] ?? '' },
    }).formData()
  } catch {
    throw new ApiError('400 Bad Request (10018)', 'Could not parse the multipart body.')
  }
}

const metadataFields = [
  ...['bindings', 'compatibility_date', 'compatibility_flags', 'logpush', 'main_module', 'migrations'],
  ...['observability', 'usage_model'],
]
const observabilityFields = ['enabled', 'head_sampling_rate', 'logs', 'traces']
const logFields = ['enabled', 'head_sampling_rate', 'invocation_logs', 'persist']
const migrationFields = ['old_tag', 'new_tag', 'new_sqlite_classes']

const checkMetadata = (metadata: Attributes, call: Call): void => {
  acceptFields(metadata, metadataFields, 'metadata.', call)
  const { migrations = {}, observability = {} } = metadata
  if (!isObject(migrations) || !isObject(observability)) {
    throw new ApiError('400 Bad Request (10021)', 'migrations and observability must be objects')
  }
  acceptFields(migrations, migrationFields, 'migrations.', call)
  acceptFields(observability, observabilityFields, 'observability.', call)
  for (const part of [observability.logs, observability.traces]) {
    if (isObject(part)) acceptFields(part, logFields, 'observability.….', call)
  }
}

/** Upload of a script: one part with the metadata as JSON, and one with the main module. */
const uploadScript: Handler = async call => {
  const { account, parts } = call
  const [name = ''] = parts
  const form = await readForm(call)
  const metadataPart = form.get('metadata')
  const metadata = parseJson(metadataPart instanceof File ? await metadataPart.text() : (metadataPart ?? ''))
  checkMetadata(metadata, call)
  const { main_module, migrations, observability, compatibility_date, compatibility_flags } = metadata
  const main = form.get(String(main_module))
  if (!(main instanceof File)) {
    throw new ApiError('400 Bad Request (10021)', `No such module: "${main_module}".`)
  }
  if (main.type !== 'application/javascript+module') {
    throw new ApiError('400 Bad Request (10021)', `The type of the main module is ${main.type}.`)
  }
  for (const part of form.keys()) if (part !== 'metadata' && part !== main_module) call.reject(`part ${part}`)
  const bindings = checkBindings(metadata.bindings, call).map(binding => ({
    ...binding,
    ...(binding.type === 'durable_object_namespace' && { namespace_id: toObjectNamespaceId(name, binding.class_name) }),
  }))
  await account.upload(name, {
    content: await main.text(),
    bindings,
    migration: parseMigration(migrations),
    observability: isObject(observability) ? observability : null,
    compatibility: {
      date: String(compatibility_date ?? ''),
      flags: Array.isArray(compatibility_flags) ? compatibility_flags.map(String) : [],
    },
  })
  return envelope({ ...listScript(account, name), startup_time_ms: FIRST_UPLOAD_MS })
}

const listScript = (account: Account, name: string): Record<string, unknown> => {
  const { compatibility } = account.script(name)
  const observability = account.readObservability(name)
  return {
    id: name,
    tag: toObjectNamespaceId(name, 'tag'),
    ...withoutNulls(readMetadata(account, name)),
    compatibility_date: compatibility.date,
    compatibility_flags: compatibility.flags,
    logpush: false,
    tail_consumers: null,
    ...(observability && { observability }),
  }
}

const withoutNulls = (values: Attributes): Attributes =>
  Object.fromEntries(Object.entries(values).filter(([, value]) => value !== null))

/** What the settings contain that an upload does not, and the other way round: no secret, no module, no migration. */
const readSettings: Handler = ({ account, parts: [name = ''] }) => {
  const { bindings, compatibility } = account.script(name)
  const observability = account.readObservability(name)
  return envelope({
    bindings: bindings.map(({ text, ...binding }) =>
      withoutNulls(binding.type === 'secret_text' || text === undefined ? binding : { ...binding, text }),
    ),
    compatibility_date: compatibility.date,
    compatibility_flags: compatibility.flags,
    usage_model: 'standard',
    logpush: false,
    placement: {},
    tags: [],
    tail_consumers: null,
    ...(observability && { observability }),
  })
}

/** The metadata of the deployed version. */
const readService: Handler = ({ account, parts: [name = ''] }) => {
  if (!account.scripts.has(name)) {
    throw new ApiError('404 Not Found (10090)', 'workers.api.error.service_not_found')
  }
  const { has_modules: _, ...script } = listScript(account, name)
  return envelope({ id: name, default_environment: { environment: 'production', script } })
}

const readContent: Handler = ({ account, parts: [name = ''] }) => new Content(account.script(name).content)

const readNamespace = ({ account, parts: [id = ''] }: Call) => {
  const title = account.namespaces.get(id)
  if (title === undefined) throw new ApiError('404 Not Found (10013)', 'namespace not found')
  return { id, title, supports_url_encoding: true }
}

const writeNamespace: Handler = call => {
  const body = readJson(call, ['title'])
  requireTexts(body, ['title'])
  const { account, parts } = call
  const [id = account.newId('namespace')] = parts
  if (parts.length > 0) readNamespace(call)
  if ([...account.namespaces].some(([other, title]) => other !== id && title === body.title)) {
    throw new ApiError('400 Bad Request (10014)', 'a namespace with this account ID and title already exists')
  }
  account.namespaces.set(id, String(body.title))
  return envelope(readNamespace({ ...call, parts: [id] }))
}

const readSubdomain = ({ account, parts: [name = ''] }: Call) => {
  account.script(name)
  const { enabled, previews } = account.subdomains.get(name) ?? { enabled: false, previews: false }
  return { enabled, previews_enabled: previews }
}

const readDomain = ({ account, parts: [id = ''] }: Call): Record<string, unknown> => {
  const domain = account.domains.get(id)
  if (!domain) throw new ApiError('404 Not Found (100114)', `no custom domain '${id}'`)
  return {
    ...readComputed(id, domain.hostname),
    hostname: domain.hostname,
    service: domain.service,
    zone_id: domain.zoneId,
  }
}

/** By method and path below the account. */
const routes: readonly (readonly [method: string, path: RegExp, handler: Handler])[] = [
  [
    'GET',
    /^workers\/scripts$/,
    ({ account }) => envelope([...account.scripts.keys()].map(id => listScript(account, id))),
  ],
  ['PUT', /^workers\/scripts\/([^/]+)$/, uploadScript],
  ['GET', /^workers\/scripts\/([^/]+)$/, readContent],
  [
    'DELETE',
    /^workers\/scripts\/([^/]+)$/,
    ({ account, parts: [name = ''] }) => {
      account.script(name)
      account.deleteScript(name)
      return envelope({ id: name })
    },
  ],
  ['GET', /^workers\/scripts\/([^/]+)\/settings$/, readSettings],
  ['GET', /^workers\/scripts\/([^/]+)\/content\/v2$/, readContent],
  ['GET', /^workers\/services\/([^/]+)$/, readService],

  ['GET', /^workers\/scripts\/([^/]+)\/subdomain$/, call => envelope(readSubdomain(call))],
  [
    'POST',
    /^workers\/scripts\/([^/]+)\/subdomain$/,
    call => {
      const { enabled, previews_enabled: previews = readSubdomain(call).previews_enabled } = readJson(
        call,
        ['enabled'],
        ['previews_enabled'],
      )
      if (typeof enabled !== 'boolean' || typeof previews !== 'boolean') {
        throw new ApiError('400 Bad Request (10021)', 'enabled and previews_enabled must be boolean')
      }
      call.account.subdomains.set(call.parts[0] ?? '', { enabled, previews })
      return envelope(readSubdomain(call))
    },
  ],
  [
    'DELETE',
    /^workers\/scripts\/([^/]+)\/subdomain$/,
    call => {
      readSubdomain(call)
      call.account.subdomains.set(call.parts[0] ?? '', { enabled: false, previews: false })
      return envelope(readSubdomain(call))
    },
  ],

  [
    'PUT',
    /^workers\/domains$/,
    call => {
      const body = readJson(call, ['hostname', 'service'], ['zone_id'])
      requireTexts(body, ['hostname', 'service', 'zone_id'])
      const { hostname, service, zone_id } = body
      const id = call.account.putDomain({
        hostname: String(hostname),
        service: String(service),
        zoneId: String(zone_id),
      })
      return envelope(readDomain({ ...call, parts: [id] }))
    },
  ],
  ['GET', /^workers\/domains\/([^/]+)$/, call => envelope(readDomain(call))],
  [
    'DELETE',
    /^workers\/domains\/([^/]+)$/,
    call => {
      const { id } = readDomain(call)
      call.account.domains.delete(String(id))
      return envelope({ id })
    },
  ],

  ['POST', /^storage\/kv\/namespaces$/, writeNamespace],
  ['PUT', /^storage\/kv\/namespaces\/([^/]+)$/, writeNamespace],
  ['GET', /^storage\/kv\/namespaces\/([^/]+)$/, call => envelope(readNamespace(call))],
  [
    'DELETE',
    /^storage\/kv\/namespaces\/([^/]+)$/,
    call => {
      call.account.namespaces.delete(readNamespace(call).id)
      return envelope({})
    },
  ],
]

/** As the API sends a script with a module: a multipart body with the main module as its first part. */
const renderContent = ({ text }: Content): string =>
  [
    `--${BOUNDARY}`,
    'Content-Disposition: form-data; name="index.js"; filename="index.js"',
    'Content-Type: application/javascript+module',
    '',
    text,
    `--${BOUNDARY}--`,
    '',
  ].join('\r\n')

const readBody = async (incoming: IncomingMessage): Promise<Buffer> => {
  const chunks: Buffer[] = []
  for await (const chunk of incoming) chunks.push(chunk)
  return Buffer.concat(chunks)
}

/** Serves the accounts at an address of this machine. */
export async function startCloudflareApi({ accounts, token }: Options): Promise<CloudflareApi> {
  const requests: string[] = []
  const unknown: string[] = []

  const handle = async (incoming: IncomingMessage, path: string): Promise<unknown> => {
    const { headers } = incoming
    const body = await readBody(incoming)
    const reject = (what: string): never => {
      unknown.push(`${incoming.method} /${path}: ${what}`)
      throw new ApiError('400 Bad Request (7003)', `The double of the API does not know this ${what}.`)
    }
    if (!headers.authorization?.startsWith('Bearer ')) {
      throw new ApiError('400 Bad Request (6003)', 'Invalid request headers')
    }
    const [, accountId = '', below = ''] = /^client\/v4\/accounts\/([^/]+)\/(.+)$/.exec(path) ?? reject('route')
    const account = accounts.get(accountId)
    if (headers.authorization !== `Bearer ${token}` || !account) {
      throw new ApiError('403 Forbidden (10000)', 'Authentication error')
    }
    for (const [method, pattern, handler] of routes) {
      const parts = method === incoming.method ? pattern.exec(below) : null
      if (parts) return handler({ account, parts: parts.slice(1).map(decodeURIComponent), headers, body, reject })
    }
    return reject('route')
  }

  const server = createServer(async (incoming, response) => {
    const path = new URL(incoming.url ?? '/', 'http://api.test').pathname.slice(1)
    let status = 200
    let result: unknown
    try {
      result = await handle(incoming, path)
    } catch (reason) {
      if (!(reason instanceof ApiError)) throw reason
      const { code, text: message } = reason
      status = reason.status
      result = { success: false, errors: [{ code, message }], messages: [], result: null }
    }
    requests.push(`${incoming.method} /${path.replace(/^client\/v4\/accounts\/[^/]+\//, '')} ${status}`)
    if (result instanceof Content) {
      response.writeHead(status, { 'content-type': `multipart/form-data; boundary=${BOUNDARY}` })
      response.end(renderContent(result))
    } else {
      response.writeHead(status, { 'content-type': 'application/json' })
      response.end(JSON.stringify(result))
    }
  })
  const port = await listenOnLoopback(server)
  return {
    url: `http://127.0.0.1:${port}/client/v4/`,
    requests,
    unknown,
    stop() {
      server.close()
      server.closeAllConnections()
    },
  }
}

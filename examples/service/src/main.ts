import { createServer, type IncomingMessage } from 'node:http'
import { AllocationClient, ClientError, ProblemError, UnexpectedResponseError } from '@pool/client/allocation'
import * as z from 'zod'
import { NameStore } from './name-store.ts'
import { Names } from './names.ts'

// A service in the cluster that gives each of its tenants a name:
// PUT /tenants/<name> {"address": "<IPv4>"} and DELETE /tenants/<name>.

const MAX_BODY_BYTES = 4_096

const {
  ALLOCATION_API = 'http://127.0.0.1:8080',
  POOL = 'pool.test',
  STATE_DIR = '.state',
  PORT = '8090',
} = process.env

const log = (fields: object): void => {
  process.stdout.write(`${JSON.stringify({ time: new Date().toISOString(), ...fields })}\n`)
}

const client = new AllocationClient({
  baseUrl: ALLOCATION_API,
  hooks: {
    onAttemptEnd: ({ operation, attempt, requestId, status, retryInMs }) =>
      log({ msg: 'call', operation, attempt, requestId, status, retryInMs }),
  },
})
const names = new Names(client, new NameStore(STATE_DIR), POOL)
/** The file of a name has its label, so only labels are accepted. */
const label = z.string().regex(/^[a-z]([a-z0-9-]{0,61}[a-z0-9])?$/)
const tenant = z.object({ address: z.ipv4() })

interface Reply {
  readonly status: number
  readonly body?: object
  readonly retryAfter?: number
}

const readBody = async (request: IncomingMessage): Promise<unknown> => {
  let text = ''
  for await (const chunk of request.setEncoding('utf8')) {
    text += chunk
    if (text.length > MAX_BODY_BYTES) return undefined
  }
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

const handle = async (request: IncomingMessage, signal: AbortSignal): Promise<Reply> => {
  const [, path, name, ...rest] = (request.url ?? '').split('/')
  const subdomain = label.safeParse(name)
  if (path !== 'tenants' || !subdomain.success || rest.length > 0) return { status: 404 }
  if (request.method === 'PUT') {
    const body = tenant.safeParse(await readBody(request))
    if (!body.success) return { status: 400, body: { detail: 'Send {"address": "<IPv4 address>"}.' } }
    const { fqdn, isPublished } = await names.publish(subdomain.data, body.data.address, signal)
    return { status: isPublished ? 200 : 202, body: { fqdn, isPublished } }
  }
  if (request.method === 'DELETE') return { status: (await names.release(subdomain.data, signal)) ? 204 : 404 }
  return { status: 405 }
}

/** The client has already repeated the call where that helps. The caller repeats the request after a 503. */
const toReply = (error: unknown): Reply => {
  // The error code of an unexpected response is of a later version of the API; its status has the usual meaning.
  const hasStatus = error instanceof ProblemError || error instanceof UnexpectedResponseError
  if (hasStatus && error.status >= 400 && error.status < 500 && error.status !== 429)
    return { status: error.status, body: { code: error.code, detail: error.detail } }
  if (error instanceof ClientError)
    return { status: 503, body: { detail: 'The allocation API is unavailable. Repeat the request.' }, retryAfter: 5 }
  return { status: 500, body: { detail: 'Internal error.' } }
}

const stop = new AbortController()
const server = createServer(async (request, response) => {
  const disconnected = new AbortController()
  response.on('close', () => disconnected.abort())
  const { status, body, retryAfter } = await handle(request, AbortSignal.any([stop.signal, disconnected.signal])).catch(
    error => {
      log({ msg: 'request failed', error: String(error) })
      return toReply(error)
    },
  )
  if (retryAfter) response.setHeader('Retry-After', retryAfter)
  if (body) response.setHeader('Content-Type', 'application/json')
  response.writeHead(status).end(body && JSON.stringify(body))
})
server.listen(Number(PORT), () => {
  const address = server.address()
  log({ msg: 'ready', port: typeof address === 'object' ? address?.port : PORT })
})
process.on('SIGTERM', () => {
  server.close()
  stop.abort()
})

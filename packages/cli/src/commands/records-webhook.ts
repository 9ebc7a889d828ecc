import { once } from 'node:events'
import { createServer, type IncomingMessage, request as requestHttp, type ServerResponse } from 'node:http'
import { request as requestHttps } from 'node:https'
import { rootCertificates } from 'node:tls'
import { RECORDS_PATH } from '@pool/contract'
import type { CommandSpec } from '../command.ts'
import { checkEndpoint, parseServiceUrl } from '../contexts.ts'
import { CommandError, LocalError } from '../exit-codes.ts'
import { readUserFile } from '../private-file.ts'
import { toPlainLine } from '../text.ts'
import { readMountedTokenFile } from '../token-store.ts'
import { parseCount } from '../values.ts'
import { toText } from './flags.ts'

/** external-dns waits 15 s, and exits if it has no response then. */
const RESPONSE_TIMEOUT_MS = 12_000
const DEFAULT_PORT = 8_888
const PORTS = { min: 1, max: 65_535 } as const
const REJECTED_HEADER = 'records-rejected'

/** The paths of the webhook's protocol, by request. */
const PATHS: Readonly<Record<string, string>> = {
  'GET /': '',
  'GET /records': '/records',
  'POST /records': '/records',
  'POST /adjustendpoints': '/adjustendpoints',
}

interface Upstream {
  /** Of the protocol, at the service. */
  readonly url: string
  readonly tokenFile: string
  readonly caFile: string | undefined
}

interface Answer {
  readonly status: number
  readonly headers: IncomingMessage['headers']
  readonly body: Buffer
}

const readAll = async (stream: AsyncIterable<Buffer>): Promise<Buffer> => {
  const parts: Buffer[] = []
  for await (const part of stream) parts.push(part)
  return Buffer.concat(parts)
}

/** Both files are read for each request, so that a new token or certificate takes effect at once. */
const forward = async ({ method, headers }: IncomingMessage, body: Buffer, path: string, upstream: Upstream) => {
  const token = await readMountedTokenFile(upstream.tokenFile)
  const ca = upstream.caFile && [...rootCertificates, await readUserFile(upstream.caFile, 'the CA file')]
  const url = new URL(upstream.url + path)
  const { accept, 'content-type': type } = headers
  const sent = (url.protocol === 'https:' ? requestHttps : requestHttp)(url, {
    method,
    headers: {
      Authorization: `Bearer ${token}`,
      'Content-Length': body.length,
      ...(accept && { Accept: accept }),
      ...(type && { 'Content-Type': type }),
    },
    signal: AbortSignal.timeout(RESPONSE_TIMEOUT_MS),
    ...(ca && { ca }),
  })
  sent.end(body)
  const [response] = (await once(sent, 'response')) as [IncomingMessage]
  return { status: response.statusCode ?? 0, headers: response.headers, body: await readAll(response) }
}

/** Prints what differs from the last lines about this path. */
type Print = (path: string, lines: readonly string[]) => void

const parseJson = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** The code and the sentence of an error of the service; null: a proxy in front of it responded. */
const toProblem = ({ status, body }: Answer): string | null => {
  const { error, detail = '' }: { error?: unknown; detail?: unknown } = Object(parseJson(body.toString()))
  return typeof error === 'string' ? `${status} ${error} ${detail}` : null
}

/** The endpoints that the service leaves out, with the reason. */
const toRejected = ({ headers }: Answer): readonly string[] => {
  const list = parseJson(String(headers[REJECTED_HEADER] ?? '[]'))
  const rows: readonly Record<string, unknown>[] = Array.isArray(list) ? list.map(Object) : []
  return rows.map(({ dnsName, error, detail }) => `left out ${dnsName}: ${error} ${detail}`)
}

/**
 * Responds to external-dns. It exits at every 4xx and at every connection that fails, so whatever a retry can cure is a 503;
 * 401 and 403 stay: its operator has to change something.
 */
const createHandler = (upstream: Upstream, print: Print) => {
  const respond = async (request: IncomingMessage): Promise<Answer> => {
    const { pathname } = new URL(request.url ?? '/', 'http://localhost')
    const path = PATHS[`${request.method} ${pathname}`]
    if (path === undefined) return { status: 404, headers: {}, body: Buffer.alloc(0) }
    // A web page can reach a port of this machine.
    if (request.headers.origin !== undefined || request.headers['sec-fetch-site'] !== undefined)
      return { status: 403, headers: {}, body: Buffer.alloc(0) }
    const answer = await forward(request, await readAll(request), path, upstream)
    if (answer.status < 300) {
      print(path, toRejected(answer))
      return answer
    }
    const problem = toProblem(answer)
    print(path, [problem ?? `${answer.status}, not of the service`])
    const isFinal = problem !== null && (answer.status === 401 || answer.status === 403)
    return isFinal ? answer : { ...answer, status: 503 }
  }
  return async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const { status, headers, body } = await respond(request).catch((error: NodeJS.ErrnoException) => {
      print('', [error instanceof CommandError ? error.message : `no response (${error.code ?? error.name})`])
      return { status: 503, headers: {} as Answer['headers'], body: Buffer.alloc(0) }
    })
    const type = headers['content-type']
    response.writeHead(status, type === undefined ? {} : { 'Content-Type': type }).end(body)
  }
}

export const webhookCommand: CommandSpec = {
  name: 'webhook',
  summary: 'Be the webhook provider that external-dns calls on this machine, for one name of the allocation API',
  description:
    'A sidecar of external-dns --provider=webhook, with its default address. The token is in no URL and no log. While the API does not respond, external-dns gets a 503 and tries again, instead of exiting. What the API rejects is printed once, with the reason. Needs no context.',
  flags: [
    { flags: '--api <url>', description: 'the address of the allocation API', isRequired: true },
    { flags: '--token-file <file>', description: 'a file with the records token', isRequired: true, suggest: 'files' },
    {
      flags: '--ca-file <file>',
      description: 'a file with another certificate authority of the API',
      suggest: 'files',
    },
    { flags: '--port <port>', description: `the port, on 127.0.0.1: ${DEFAULT_PORT} by default` },
    { flags: '--insecure', description: 'permit the token over http to another machine' },
  ],
  examples: ['records webhook --api https://records.pool.example --token-file /run/secrets/records/token'],
  operations: [
    'getExternalDnsFilter',
    'listExternalDnsRecords',
    'applyExternalDnsChanges',
    'adjustExternalDnsEndpoints',
  ],
  async run(session, { flags }) {
    const { host, output } = session
    const api = parseServiceUrl(String(flags.api), '--api')
    checkEndpoint('api', { url: api, insecure: flags.insecure === true }, '--api', true)
    const upstream = {
      url: `${api}${RECORDS_PATH}/external-dns`,
      tokenFile: String(flags.tokenFile),
      caFile: toText(flags.caFile),
    }
    // Before external-dns waits for it.
    await readMountedTokenFile(upstream.tokenFile)
    if (upstream.caFile !== undefined) await readUserFile(upstream.caFile, 'the CA file')
    const port = parseCount(toText(flags.port) ?? `${DEFAULT_PORT}`, '--port', PORTS)
    const printed = new Map<string, readonly string[]>()
    /** At each interval external-dns sends the same again. */
    const print: Print = (path, lines) => {
      const former = printed.get(path) ?? []
      for (const line of lines.filter(text => !former.includes(text))) host.stderr.write(`${toPlainLine(line)}\n`)
      printed.set(path, lines)
    }
    const handle = createHandler(upstream, print)
    const server = createServer((request, response) => void handle(request, response))
    server.listen(port, '127.0.0.1')
    try {
      await once(server, 'listening')
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException
      throw new LocalError(`port ${port} cannot be used (${code}); name another one with --port.`)
    }
    output.note(`external-dns can use --webhook-provider-url=http://localhost:${port}`)
    if (!host.interrupted.aborted) await once(host.interrupted, 'abort')
    server.close()
    server.closeAllConnections()
  },
}

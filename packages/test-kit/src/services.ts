import { fileURLToPath } from 'node:url'
import { type LogLine, type NodeOptions, type NodeProcess, startNode } from '@pool/dev/process'
import { TOKEN } from './lease-connection.ts'

// Starts the services of this repository as processes, as they are deployed.

const toPath = (path: string): string => fileURLToPath(new URL(`../../../apps/${path}`, import.meta.url))
const usesBundles = process.env.TEST_BUNDLES === '1'

/**
 * The file of a command of the API: its source, or with TEST_BUNDLES=1 what the last build made of it. A run of
 * all tests sets the variable, so it tests the files of the image.
 */
export const toApiEntry = (command = 'main'): string =>
  toPath(usesBundles ? `allocation-api/dist/${command}.js` : `allocation-api/src/${command}.ts`)

/** The same of the witness on Postgres. */
export const toWitnessEntry = (command = 'main'): string =>
  toPath(usesBundles ? `lease-witness/dist-node/${command}.js` : `lease-witness/src/node/${command}.ts`)

/** The witness under workerd, as `pnpm --filter lease-witness start` runs it. A kill leaves workerd running for a moment. */
export const LOCAL_WITNESS_ENTRY = toPath('lease-witness/local/main.ts')

/** A service that runs. Disposal stops it. */
export interface Service extends AsyncDisposable {
  /** Without a trailing slash. */
  readonly url: string
  readonly port: number
  /** The fields of its ready line. */
  readonly ready: LogLine
  readonly process: NodeProcess
  /** Every line of output so far, unless `keepsLines` is false. */
  readonly lines: readonly string[]
}

export interface ServiceOptions extends Omit<NodeOptions, 'onLine'> {
  /** False: nothing splits the lines of a busy service. */
  readonly keepsLines?: boolean
}

/** Starts a service and waits until it is ready. Of the environment of the tests it gets `env` only. */
export const startService = async ({ keepsLines = true, ...options }: ServiceOptions): Promise<Service> => {
  const lines: string[] = []
  const child = startNode({ ...options, ...(keepsLines ? { onLine: line => lines.push(line) } : {}) })
  const ready = await child.ready
  if (typeof ready.port !== 'number') throw new Error(`the ready line of ${options.entry} has no port`)
  return {
    url: `http://127.0.0.1:${ready.port}`,
    port: ready.port,
    ready,
    process: child,
    lines,
    [Symbol.asyncDispose]: async () => void (await child.stop()),
  }
}

/** Runs a command of a service until it exits. A service that starts nevertheless is killed. */
export const runUntilExit = async (
  options: Pick<NodeOptions, 'entry' | 'env' | 'args'>,
): Promise<{ readonly code: number | null; readonly lines: readonly string[] }> => {
  const lines: string[] = []
  const child = startNode({ ...options, onLine: line => lines.push(line) })
  void child.ready.then(child.kill, () => {})
  const { code } = await child.exited
  return { code, lines }
}

export interface Replicas<Replica extends Service> extends AsyncDisposable {
  readonly replicas: readonly Replica[]
  /** Round robin. */
  next(): Replica
  /** Kills them. */
  kill(): Promise<void>
}

/** Starts replicas of a service concurrently. If one does not start, the others are killed. */
export const startReplicas = async <Replica extends Service>(
  count: number,
  start: () => Promise<Replica>,
): Promise<Replicas<Replica>> => {
  const starts = await Promise.allSettled(Array.from({ length: count }, start))
  const replicas = starts.flatMap(each => (each.status === 'fulfilled' ? [each.value] : []))
  const kill = async () => void (await Promise.all(replicas.map(replica => replica.process.kill())))
  const failed = starts.find(each => each.status === 'rejected')
  if (failed) {
    await kill()
    throw failed.reason
  }
  let nextIndex = 0
  return {
    replicas,
    next() {
      const replica = replicas[nextIndex % replicas.length]
      nextIndex += 1
      if (!replica) throw new Error('startReplicas needs a count of at least 1')
      return replica
    },
    kill,
    [Symbol.asyncDispose]: async () => void (await Promise.all(replicas.map(replica => replica.process.stop()))),
  }
}

export interface ApiResponse {
  readonly status: number
  readonly headers: Headers
  readonly text: string
  // biome-ignore lint/suspicious/noExplicitAny: the tests assert on bodies of every shape.
  readonly body: any
}

/** Sends a request. A `body` that is neither a string nor bytes is sent as JSON. */
export const sendRequest = async (
  url: string,
  method: string,
  body?: unknown,
  headers: Record<string, string> = {},
): Promise<ApiResponse> => {
  const raw = body === undefined || typeof body === 'string' || body instanceof Uint8Array
  const response = await fetch(url, {
    method,
    headers,
    ...(body === undefined ? {} : { body: raw ? (body as string) : JSON.stringify(body) }),
  })
  const text = await response.text()
  const isJson = /\bjson\b/.test(response.headers.get('content-type') ?? '') && text !== ''
  return { status: response.status, headers: response.headers, text, body: isJson ? JSON.parse(text) : undefined }
}

export interface Api extends Service {
  /** Null when no operator tokens are set. */
  readonly operatorUrl: string | null
  /** Port of the local provider's DNS server, UDP and TCP, on 127.0.0.1; 0 with another provider. */
  readonly dnsPort: number
  call(method: string, path: string, body?: unknown, headers?: Record<string, string>): Promise<ApiResponse>
}

/** All test files share the connections of one Postgres. */
export const smallPoolEnv = { PDM_DATABASE_POOL_SIZE: '5' }

/** Starts the API on free ports, with the local DNS provider, by default that of this checkout. */
export const startApi = async (
  databaseUrl: string,
  env: NodeJS.ProcessEnv = {},
  options: Partial<Omit<ServiceOptions, 'env'>> = {},
): Promise<Api> => {
  const service = await startService({
    entry: toApiEntry(),
    env: { PORT: '0', PDM_OPERATOR_PORT: '0', PDM_DATABASE_URL: databaseUrl, DNSPROVIDER_KIND: 'local', ...env },
    ...options,
  })
  const { operatorPort, dns } = service.ready as { operatorPort?: number | null; dns?: { dnsPort?: number } }
  return {
    ...service,
    operatorUrl: typeof operatorPort === 'number' ? `http://127.0.0.1:${operatorPort}` : null,
    dnsPort: dns?.dnsPort ?? 0,
    call: (method, path, body, headers) => sendRequest(service.url + path, method, body, headers),
  }
}

/** Tests are one client, and share a token: without a request limit. */
export const WITNESS_ENV = { PORT: '0', BEARER_TOKENS_CSV: TOKEN, MAX_REQUESTS_PER_MINUTE: '0' }

/** Starts the witness on Postgres, as `pnpm --filter lease-witness start:postgres` runs it. By default its lines are not kept. */
export const startWitness = (
  databaseUrl: string,
  env: NodeJS.ProcessEnv = {},
  options: Partial<Omit<ServiceOptions, 'env'>> = {},
): Promise<Service> =>
  startService({
    entry: toWitnessEntry(),
    env: { ...WITNESS_ENV, WITNESS_DATABASE_URL: databaseUrl, ...env },
    keepsLines: false,
    ...options,
  })

/** Starts the witness under workerd with its storage in a folder: a Node process with workerd as its child. */
export const startLocalWitness = (
  dataDir: string,
  env: NodeJS.ProcessEnv = {},
  entry = LOCAL_WITNESS_ENTRY,
): Promise<Service> => startService({ entry, env: { ...WITNESS_ENV, LOG_LEVEL: 'error', DATA_DIR: dataDir, ...env } })

import { fileURLToPath } from 'node:url'
import { type NodeProcess, startNode } from '@pool/dev/process'
import * as z from 'zod'

/**
 * The file of a command of the API: its source, or with TEST_BUNDLES=1 what the last build made of it. A run of
 * all tests sets the variable, so it tests the files of the image.
 */
export const toEntry = (command: string): string =>
  fileURLToPath(
    new URL(process.env.TEST_BUNDLES === '1' ? `../../dist/${command}.js` : `../../src/${command}.ts`, import.meta.url),
  )

const readyLine = z.object({
  port: z.number(),
  operatorPort: z.number().nullable(),
  dns: z.object({ dnsPort: z.number().default(0) }),
})

export interface Api {
  /** Without a trailing slash. */
  readonly url: string
  /** Null when no operator tokens are set. */
  readonly operatorUrl: string | null
  /** Port of the local provider's DNS server, UDP and TCP, on 127.0.0.1; 0 with another provider. */
  readonly dnsPort: number
  readonly process: NodeProcess
  /** Every line of output so far. */
  readonly lines: readonly string[]
  call(method: string, path: string, body?: unknown, headers?: Record<string, string>): Promise<ApiResponse>
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
  const isJson = response.headers.get('content-type')?.startsWith('application/json') && text !== ''
  return { status: response.status, headers: response.headers, text, body: isJson ? JSON.parse(text) : undefined }
}

/**
 * Starts the API as a child process on free ports, by default that of this checkout. Of the environment of the tests it gets
 * `env` only.
 */
export const startApi = async (
  databaseUrl: string,
  env: Record<string, string> = {},
  entry = toEntry('main'),
): Promise<Api> => {
  const lines: string[] = []
  const child = startNode({
    entry,
    env: { PORT: '0', PDM_OPERATOR_PORT: '0', PDM_DATABASE_URL: databaseUrl, DNSPROVIDER_KIND: 'local', ...env },
    onLine: line => lines.push(line),
  })
  const ready = readyLine.parse(await child.ready)
  const url = `http://127.0.0.1:${ready.port}`
  return {
    url,
    operatorUrl: ready.operatorPort === null ? null : `http://127.0.0.1:${ready.operatorPort}`,
    dnsPort: ready.dns.dnsPort,
    process: child,
    lines,
    call: (method, path, body, headers) => sendRequest(url + path, method, body, headers),
  }
}

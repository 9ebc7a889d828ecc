import { getHost, type RequestBody, type WitnessRequest, type WitnessSettings } from './host.ts'

/** The allow-list in vitest.workspace.ts. */
export const TOKEN = 'token-of-region-a-0123456789abcdef'
/** The first 32 bits of its SHA-256. */
export const FINGERPRINT = 'sha256:19593234'
export const OTHER_TOKEN = 'token-of-region-b-0123456789abcdef'

export interface ReceivedResponse {
  readonly status: number
  readonly headers: Headers
  readonly text: string
  /** The parsed body; undefined if it is empty. */
  readonly json: unknown
}

export interface SendOptions {
  /** Absent: the first test token. null: no Authorization header. */
  readonly authorization?: string | null
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: RequestBody
  readonly signal?: AbortSignal
}

export const createRequest = (method: string, path: string, options: SendOptions): WitnessRequest => {
  const { authorization = `Bearer ${TOKEN}`, headers = {}, ...rest } = options
  const token = authorization === null ? {} : { Authorization: authorization }
  return { method, path, headers: { ...token, ...headers }, ...rest }
}

export const readResponse = async (response: Response): Promise<ReceivedResponse> => {
  const text = await response.text()
  return { status: response.status, headers: response.headers, text, json: text === '' ? undefined : JSON.parse(text) }
}

/** Sends a request to the witness with other settings. */
export const sendWith = async (
  settings: WitnessSettings,
  method: string,
  path: string,
  options: SendOptions = {},
): Promise<ReceivedResponse> => readResponse(await getHost().send(createRequest(method, path, options), settings))

/** Sends a request to the witness under test. */
export const send = (method: string, path: string, options: SendOptions = {}): Promise<ReceivedResponse> =>
  sendWith({}, method, path, options)

/** A token as a policy names it. */
export const hashToken = async (token: string): Promise<string> => {
  const digest = new Uint8Array(await crypto.subtle.digest('SHA-256', new TextEncoder().encode(token)))
  return `sha256:${[...digest].map(byte => byte.toString(16).padStart(2, '0')).join('')}`
}

/** A slot that no other test uses. */
export const freshSlot = (): string => `fresh/${crypto.randomUUID()}`

export const leasePath = (slot: string): string => `/lease/${encodeURIComponent(slot)}`

interface PutBody {
  readonly holder?: unknown
  readonly ttlSeconds?: unknown
  readonly op?: unknown
  readonly value?: unknown
}

export const put = (slot: string, ifMatch: number | string, body: PutBody = {}): Promise<ReceivedResponse> =>
  send('PUT', leasePath(slot), {
    headers: { 'If-Match': String(ifMatch) },
    body: JSON.stringify({ holder: 'region-a', ...body }),
  })

export const release = (slot: string, ifMatch: number | string, holder = 'region-a'): Promise<ReceivedResponse> =>
  send('DELETE', leasePath(slot), { headers: { 'If-Match': String(ifMatch), 'X-Holder': holder } })

export const get = (slot: string, headers: Readonly<Record<string, string>> = {}): Promise<ReceivedResponse> =>
  send('GET', leasePath(slot), { headers })

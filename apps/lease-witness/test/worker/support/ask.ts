import { exports } from 'cloudflare:workers'

/** One of the tokens that the test run is configured with. */
export const TOKEN = 'token-of-region-a-0123456789abcdef'
export const OTHER_TOKEN = 'token-of-region-b-0123456789abcdef'

export interface Asked {
  readonly status: number
  readonly headers: Headers
  readonly text: string
  /** The body as JSON; undefined when there is none. */
  readonly json: unknown
}

export interface Question {
  /** Absent: the first test token. null: no Authorization header. */
  readonly authorization?: string | null
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: BodyInit
}

/** One request to the worker under test, in this isolate. */
export const ask = async (method: string, path: string, question: Question = {}): Promise<Asked> => {
  const { authorization = `Bearer ${TOKEN}`, headers = {}, body } = question
  const response = await exports.default.fetch(
    new Request(`http://witness.test${path}`, {
      method,
      headers: { ...(authorization === null ? {} : { Authorization: authorization }), ...headers },
      ...(body === undefined ? {} : { body }),
    }),
  )
  const text = await response.text()
  return { status: response.status, headers: response.headers, text, json: text === '' ? undefined : JSON.parse(text) }
}

/** A slot that no other test has used. */
export const freshSlot = (): string => `fresh/${crypto.randomUUID()}`

interface Put {
  readonly holder?: unknown
  readonly ttlSeconds?: unknown
  readonly op?: unknown
}

export const put = (slot: string, ifMatch: number | string, body: Put = {}): Promise<Asked> =>
  ask('PUT', `/lease/${encodeURIComponent(slot)}`, {
    headers: { 'If-Match': String(ifMatch) },
    body: JSON.stringify({ holder: 'region-a', ...body }),
  })

export const release = (slot: string, ifMatch: number | string, holder = 'region-a'): Promise<Asked> =>
  ask('DELETE', `/lease/${encodeURIComponent(slot)}`, { headers: { 'If-Match': String(ifMatch), 'X-Holder': holder } })

export const get = (slot: string, headers: Readonly<Record<string, string>> = {}): Promise<Asked> =>
  ask('GET', `/lease/${encodeURIComponent(slot)}`, { headers })

import { findOwnSegment, type Operation } from '@pool/contract'

/** The parts of a request, as the operation names them. */
export interface RequestParts {
  readonly path?: Readonly<Record<string, unknown>>
  readonly query?: Readonly<Record<string, unknown>>
  readonly headers?: Readonly<Record<string, string | undefined>>
  /** Sent as JSON, or as it is if the operation has another media type. */
  readonly body?: unknown
}

/** Returns the base URL without a slash at its end. Throws a TypeError without the URL, whose password is a secret. */
export const parseBaseUrl = (baseUrl: string | URL, operations: Readonly<Record<string, Operation>>): string => {
  const text = String(baseUrl)
  const url = URL.canParse(text) ? new URL(text) : null
  if (url === null || !/^https?:$/.test(url.protocol)) {
    throw new TypeError('baseUrl must be an absolute URL with http or https, such as https://allocation.example.')
  }
  if (url.username !== '' || url.password !== '') throw new TypeError('baseUrl must have no user: use token.')
  if (url.search !== '' || url.hash !== '') throw new TypeError('baseUrl must have neither a query nor a fragment.')
  const own = findOwnSegment(url.pathname, operations)
  if (own !== undefined) throw new TypeError(`baseUrl must have no /${own} in its path: the client adds it. Remove it.`)
  return url.href.replace(/\/+$/, '')
}

/** URLs resolve segments of dots, so that the request would be another one, however they are encoded. */
const isSendableSegment = (value: unknown): value is string =>
  typeof value === 'string' && value !== '' && value !== '.' && value !== '..'

const toPath = ({ id, path }: Operation, fields: Readonly<Record<string, unknown>>): string =>
  path.replace(/\{(\w+)\}/g, (_, name: string) => {
    const value = fields[name]
    if (!isSendableSegment(value)) throw new TypeError(`${id}: ${name} must be text other than "", "." and "..".`)
    return encodeURIComponent(value)
  })

const toQuery = (fields: Readonly<Record<string, unknown>>): string => {
  const query = new URLSearchParams()
  for (const [name, value] of Object.entries(fields)) {
    for (const item of Array.isArray(value) ? value : [value]) {
      if (typeof item === 'object' && item !== null) throw new TypeError(`${name} must be text.`)
      if (item !== undefined && item !== null) query.append(name, String(item))
    }
  }
  return query.size === 0 ? '' : `?${query}`
}

/** The URL of a request. Throws a TypeError if a field of the path is missing or cannot be sent. */
export const toUrl = (baseUrl: string, operation: Operation, { path = {}, query = {} }: RequestParts): string =>
  baseUrl + toPath(operation, path) + toQuery(query)

/** Field values of HTTP (RFC 9110 section 5.5) in ASCII. The runtime's own error would quote the value. */
const isHeaderValue = (value: string): boolean => /^(?:[!-~](?:[\t -~]*[!-~])?)?$/.test(value)

/** The headers that have a value. Throws a TypeError that names the header of an invalid value, not the value. */
export const toHeaders = (
  operation: Operation,
  headers: Readonly<Record<string, string | undefined>>,
): Record<string, string> => {
  const sent: Record<string, string> = {}
  for (const [name, value] of Object.entries(headers)) {
    if (value === undefined) continue
    if (typeof value !== 'string' || !isHeaderValue(value)) {
      throw new TypeError(`${operation.id}: ${name} must be printable ASCII without a space at either end.`)
    }
    sent[name] = value
  }
  return sent
}

/** A body that is not JSON. A stream can be sent once. */
export type RawBody = string | Uint8Array<ArrayBuffer> | Blob | ReadableStream<Uint8Array>

/** The body as `fetch` takes it. */
export const toBody = ({ id, body: spec }: Operation, body: unknown): RawBody | undefined => {
  if (spec === undefined || body === undefined) return undefined
  if (spec.mediaType !== undefined) return body as RawBody
  const text = JSON.stringify(body)
  if (text === undefined) throw new TypeError(`${id}: the body must be a JSON value.`)
  return text
}

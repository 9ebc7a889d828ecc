import type { HttpResponse } from '@pool/test-kit/http1.ts'
import { type RequestOutcome, TRUNCATED } from '../connection.ts'
import type { FuzzRequest } from '../request.ts'
import type { DocumentedOperation, DocumentedResponse, ServiceDocument } from './document.ts'
import { findLeaks } from './secrets.ts'

/** What the oracle knows of a service in addition to its document. */
export interface Rules {
  readonly document: ServiceDocument
  /** Whether a current fault explains a 503 with this code, or a health response with this status. */
  readonly isExplained: (code: string) => boolean
  /** Whether the platform sent the response: invalid HTTP does not reach the service. */
  readonly isFromPlatform: (response: HttpResponse, request: FuzzRequest) => boolean
  readonly mark: RegExp
  /** Whether this UUID is a token that the service issued. */
  readonly isToken: (uuid: string) => boolean
  /** Normalized origins of web pages that may send requests; null: the service does not look at pages. */
  readonly allowedOrigins: readonly string[] | null
}

/** Responses that every path can have, by status, all in the common error shape. Operations do not document them. */
const commonErrors: ReadonlyMap<number, readonly string[]> = new Map([
  [400, ['invalid-format', 'invalid-request']],
  [401, ['unauthorized']],
  [403, ['forbidden']],
  [404, ['not-found']],
  [405, ['method-not-allowed']],
  [408, ['invalid-format']],
  [413, ['body-too-large']],
  [429, ['too-many-requests']],
  [417, ['invalid-format']],
  [431, ['invalid-format']],
])

const parseJson = (body: Buffer): unknown => {
  try {
    return JSON.parse(body.toString('utf8'))
  } catch {
    return undefined
  }
}

const toCode = (body: unknown): string => {
  if (typeof body !== 'object' || body === null) return ''
  if ('error' in body && typeof body.error === 'string') return body.error
  return 'status' in body && typeof body.status === 'string' ? body.status : ''
}

/** The operations that a request may have reached: with a mutated path, any of them. */
const findReached = (
  { operations }: ServiceDocument,
  { method, target, row, raw }: FuzzRequest,
): readonly DocumentedOperation[] => {
  if (raw || row === 'paths') return operations
  const documented = method === 'HEAD' ? 'GET' : method
  const path = target.replace(/[?#].*$/s, '')
  return operations.filter(operation => operation.method === documented && operation.pattern.test(path))
}

/** Whether `type` is the documented media type, or in its range such as `text/*` (RFC 9110 section 12.5.1). */
const isInRange = (type: string, range: string): boolean =>
  range.endsWith('/*') ? type.startsWith(range.slice(0, -1)) : type === range

/** How a response differs from a documented one; null: it does not. */
const compareWith = (
  { description, mediaType, validate }: DocumentedResponse,
  response: HttpResponse,
  body: unknown,
): string | null => {
  const type = response.headers.get('content-type')
  if (mediaType === null) return response.body.length === 0 ? null : 'a body where none is documented'
  if (!isInRange(type?.split(';')[0]?.trim() ?? '', mediaType)) return `Content-Type ${type}, not ${mediaType}`
  if (mediaType !== 'application/json') return null
  if (body === undefined) return 'a body that is not JSON'
  if (validate && !validate(body)) {
    const [first] = validate.errors ?? []
    return `a body outside its schema: ${first?.instancePath ?? ''} ${first?.message ?? ''}`
  }
  const code = typeof body === 'object' && body !== null && 'error' in body ? toCode(body) : ''
  return code === '' || response.status < 400 || response.status === 500 || description.includes(`\`${code}\``)
    ? null
    : `a code that is not documented here: ${code}`
}

/** RFC 9110, sections 11.6.1 and 10.2.1. */
const checkRequiredHeader = ({ status, headers }: HttpResponse): string | null => {
  if (status === 405 && !headers.has('allow')) return 'a 405 without Allow'
  if (status === 401 && !headers.has('www-authenticate')) return 'a 401 without WWW-Authenticate'
  return null
}

const checkSchema = ({ document }: Rules, request: FuzzRequest, response: HttpResponse): string | null => {
  const body = parseJson(response.body)
  const candidates = findReached(document, request).flatMap(operation => operation.responses.get(response.status) ?? [])
  const differences = candidates.map(candidate => compareWith(candidate, response, body))
  if (differences.includes(null)) return null
  const codes = commonErrors.get(response.status)
  if (codes?.includes(toCode(body))) {
    if (!document.isProblem(body)) return 'an error outside the common shape'
    if (response.headers.get('content-type')?.split(';')[0] !== 'application/json')
      return 'an error whose Content-Type is not JSON'
    return null
  }
  return differences[0] ?? 'a status that is not documented'
}

const checkHead = ({ document }: Rules, request: FuzzRequest, { status }: HttpResponse): string | null => {
  const isKnown =
    commonErrors.has(status) || findReached(document, request).some(({ responses }) => responses.has(status))
  return isKnown ? null : 'a status that is not documented'
}

const findHeaders = ({ headers }: FuzzRequest, name: string): string[] =>
  headers.filter(line => line.toLowerCase().startsWith(`${name}:`)).map(line => line.slice(name.length + 1).trim())

/** Whether a page of another site sent the request; null: unclear, or not sent by a browser. */
const isFromForeignPage = ({ allowedOrigins }: Rules, request: FuzzRequest): boolean | null => {
  const [site, ...moreSites] = findHeaders(request, 'sec-fetch-site')
  const [origin, ...moreOrigins] = findHeaders(request, 'origin')
  const isClear = moreSites.length + moreOrigins.length + findHeaders(request, 'host').length === 0
  if (!allowedOrigins || request.raw || !isClear) return null
  if (origin !== undefined && allowedOrigins.includes(origin)) return false
  if (site === undefined) return origin === undefined ? null : true
  return { 'same-origin': false, none: false, 'same-site': true, 'cross-site': true }[site] ?? null
}

const checkPage = (rules: Rules, request: FuzzRequest, { status, text }: HttpResponse): string[] => {
  const isForeign = isFromForeignPage(rules, request)
  if (isForeign === true && status < 400) return ['a request from a page of another site was accepted']
  return isForeign === false && status === 403 && /web page/.test(text) ? ['a request from a page was rejected'] : []
}

const REQUEST_ID = /^[A-Za-z0-9._:/+=@-]{1,128}$/

const checkResponse = (rules: Rules, request: FuzzRequest, response: HttpResponse): string[] => {
  const violations: string[] = []
  const code = toCode(parseJson(response.body))
  const isHead = request.method === 'HEAD'
  if (response.status >= 500 && !(response.status === 503 && (isHead || rules.isExplained(code)))) {
    violations.push(`${response.status} ${code} without a cause`)
  }
  if (!REQUEST_ID.test(response.headers.get('x-request-id') ?? '')) violations.push('no X-Request-Id')
  if ([...response.headers.keys()].some(name => name.startsWith('access-control-'))) violations.push('a CORS header')
  const difference =
    checkRequiredHeader(response) ??
    (isHead ? checkHead(rules, request, response) : checkSchema(rules, request, response))
  if (difference !== null) violations.push(`${response.status}: ${difference}`)
  return [...violations, ...checkPage(rules, request, response)]
}

/** Everything that is wrong with the outcome of a request. */
export const findViolations = (rules: Rules, request: FuzzRequest, outcome: RequestOutcome): string[] => {
  if (outcome.kind === 'timeout') return ['timeout: neither a response nor an end']
  if (outcome.kind === 'silent') return ['timeout: an event stream without a comment']
  if (outcome.kind === 'endless') return ['timeout: an event stream that does not end']
  if (outcome.kind === 'malformed') {
    const isExplained = outcome.detail === TRUNCATED && rules.isExplained(TRUNCATED)
    return isExplained ? [] : [`a malformed response: ${outcome.detail}`]
  }
  // A closed connection is a valid response to bytes that are not a request.
  if (outcome.kind === 'closed') return request.raw ? [] : ['closed without a response']
  const { response, extraBytes } = outcome
  const violations = findLeaks(rules, request, response)
  if (extraBytes > 0 && !request.raw)
    violations.push(request.method === 'HEAD' ? 'HEAD with a body' : 'bytes after the response')
  return rules.isFromPlatform(response, request)
    ? violations
    : [...violations, ...checkResponse(rules, request, response)]
}

import { type Answer, brokenOff } from '../wire/answer.ts'
import type { Outcome } from '../wire/connection.ts'
import type { FuzzRequest } from '../wire/request.ts'
import type { DocumentedAnswer, DocumentedOperation, ServiceDocument } from './document.ts'
import { leaks } from './secrets.ts'

/** What is known of a service besides its document. */
export interface Rules {
  readonly document: ServiceDocument
  /** Codes of a 503 that what is down explains; and statuses of a health body. */
  readonly isExplained: (code: string) => boolean
  /** Whether an answer comes from the platform and not from the service: to what is no HTTP, of which it sees nothing. */
  readonly isPlatforms: (answer: Answer, request: FuzzRequest) => boolean
  readonly mark: RegExp
  /** Whether this text is a token that was given to somebody. */
  readonly isToken: (uuid: string) => boolean
}

/** What any path can be answered, by status; in the one error shape, and so not said of each operation. */
const general: ReadonlyMap<number, readonly string[]> = new Map([
  [400, ['invalid-format', 'invalid-request']],
  [401, ['unauthorized']],
  [404, ['not-found']],
  [405, ['method-not-allowed']],
  [408, ['invalid-format']],
  [413, ['body-too-large']],
  [417, ['invalid-format']],
  [431, ['invalid-format']],
])

const jsonOf = (body: Buffer): unknown => {
  try {
    return JSON.parse(body.toString('utf8'))
  } catch {
    return undefined
  }
}

const codeOf = (body: unknown): string => {
  if (typeof body !== 'object' || body === null) return ''
  if ('error' in body && typeof body.error === 'string') return body.error
  return 'status' in body && typeof body.status === 'string' ? body.status : ''
}

const pathOf = (target: string): string => target.replace(/[?#].*$/s, '')

/** The operations that a request may have reached: of a path that was bent, any. */
const reached = (
  { operations }: ServiceDocument,
  { method, target, row, raw }: FuzzRequest,
): readonly DocumentedOperation[] => {
  if (raw || row === 'paths') return operations
  const wanted = method === 'HEAD' ? 'GET' : method
  const path = pathOf(target)
  return operations.filter(one => one.method === wanted && one.pattern.test(path))
}

/** Why an answer is not the documented one; null: it is. */
const faultUnder = (
  { description, mediaType, validate }: DocumentedAnswer,
  answer: Answer,
  body: unknown,
): string | null => {
  const type = answer.headers.get('content-type')
  if (mediaType === null) return answer.body.length === 0 ? null : 'a body where none is documented'
  // A stand-in for several types, each of them a file's.
  if (mediaType !== 'application/octet-stream' && type?.split(';')[0]?.trim() !== mediaType)
    return `Content-Type ${type}, not ${mediaType}`
  if (mediaType !== 'application/json') return null
  if (body === undefined) return 'a body that is no JSON'
  if (validate && !validate(body)) {
    const [first] = validate.errors ?? []
    return `a body outside its schema: ${first?.instancePath ?? ''} ${first?.message ?? ''}`
  }
  const code = typeof body === 'object' && body !== null && 'error' in body ? codeOf(body) : ''
  return code === '' || answer.status < 400 || answer.status === 500 || description.includes(`\`${code}\``)
    ? null
    : `a code that is not documented here: ${code}`
}

const schemaFault = ({ document }: Rules, request: FuzzRequest, answer: Answer): string | null => {
  const body = jsonOf(answer.body)
  const candidates = reached(document, request).flatMap(one => one.answers.get(answer.status) ?? [])
  const faults = candidates.map(candidate => faultUnder(candidate, answer, body))
  if (faults.includes(null)) return null
  const codes = general.get(answer.status)
  if (codes?.includes(codeOf(body))) {
    if (!document.isProblem(body)) return 'an error that is not in the one shape'
    if (answer.headers.get('content-type')?.split(';')[0] !== 'application/json')
      return 'an error that is not called JSON'
    if (answer.status === 405 && !answer.headers.has('allow')) return 'a 405 without Allow'
    if (answer.status === 401 && !answer.headers.has('www-authenticate')) return 'a 401 without WWW-Authenticate'
    return null
  }
  return faults[0] ?? 'a status that is not documented'
}

const headFault = ({ document }: Rules, request: FuzzRequest, { status }: Answer): string | null => {
  const isKnown = general.has(status) || reached(document, request).some(({ answers }) => answers.has(status))
  return isKnown ? null : 'a status that is not documented'
}

const saneId = /^[A-Za-z0-9._:/+=@-]{1,128}$/

const faultsOf = (rules: Rules, request: FuzzRequest, answer: Answer): string[] => {
  const faults: string[] = []
  const code = codeOf(jsonOf(answer.body))
  const isHead = request.method === 'HEAD'
  if (answer.status >= 500 && !(answer.status === 503 && (isHead || rules.isExplained(code)))) {
    faults.push(`${answer.status} ${code} that nothing explains`)
  }
  if (!saneId.test(answer.headers.get('x-request-id') ?? '')) faults.push('no X-Request-Id')
  const fault = isHead ? headFault(rules, request, answer) : schemaFault(rules, request, answer)
  if (fault !== null) faults.push(`${answer.status}: ${fault}`)
  return faults
}

/** All that is wrong with what became of a request. */
export const violations = (rules: Rules, request: FuzzRequest, outcome: Outcome): string[] => {
  if (outcome.kind === 'stuck') return ['stuck: neither an answer nor an end']
  if (outcome.kind === 'broken' && outcome.detail === brokenOff && rules.isExplained(brokenOff)) return []
  if (outcome.kind === 'broken') return [`an answer that is no HTTP: ${outcome.detail}`]
  // Of bytes that are no request an end is an answer.
  if (outcome.kind === 'closed') return request.raw ? [] : ['closed without an answer']
  const { answer, leftOver } = outcome
  const faults = leaks(rules, request, answer)
  if (leftOver > 0 && !request.raw)
    faults.push(request.method === 'HEAD' ? 'HEAD with a body' : 'bytes after the answer')
  return rules.isPlatforms(answer, request) ? faults : [...faults, ...faultsOf(rules, request, answer)]
}

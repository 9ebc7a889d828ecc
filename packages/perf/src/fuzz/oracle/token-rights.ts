import type { HttpResponse } from '@pool/test-kit/http1.ts'
import type { FuzzRequest } from '../request.ts'
import type { TokenRights } from '../witness-tokens.ts'

/** What a request asks for, as a server reads it. Holder and slots: undefined if it is unclear. */
type Action =
  | { readonly kind: 'slot'; readonly isWrite: boolean; readonly slot: string; readonly holder: string | undefined }
  | { readonly kind: 'copies'; readonly prefix: string }
  | { readonly kind: 'other' }

const isInside = ({ slots }: TokenRights, text: string): boolean =>
  slots === null || slots.some(prefix => text.startsWith(prefix))

const isOwnHolder = ({ holders }: TokenRights, holder: string): boolean =>
  holders === null ||
  holders.some(pattern => (pattern.endsWith('*') ? holder.startsWith(pattern.slice(0, -1)) : holder === pattern))

const findHeaders = ({ headers }: FuzzRequest, name: string): string[] =>
  headers.filter(line => line.toLowerCase().startsWith(`${name}:`)).map(line => line.slice(name.length + 1).trim())

const parseJson = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

const decode = (text: string): string | undefined => {
  try {
    return decodeURIComponent(text)
  } catch {
    return undefined
  }
}

/** The holder of a write that names it once; undefined: unclear. */
const findHolder = (request: FuzzRequest): string | undefined => {
  const inHeader = findHeaders(request, 'x-holder')
  const text = request.body?.toString('utf8') ?? ''
  const isClear =
    !['bodies', 'framing'].includes(request.row) && inHeader.length <= 1 && text.split('"holder"').length <= 2
  const inBody = request.method === 'DELETE' ? undefined : Object(parseJson(text)).holder
  if (!isClear || (inBody !== undefined && inHeader.length > 0)) return undefined
  const holder = inBody ?? inHeader[0]
  return typeof holder === 'string' && holder !== '' ? holder : undefined
}

/** Undefined: the oracle cannot say what the server understands. */
const toAction = (request: FuzzRequest): Action | undefined => {
  const url = /^\/[!-~]*$/.test(request.target) ? URL.parse(`http://witness${request.target}`) : null
  if (!url) return undefined
  const { method } = request
  const [, resource, tail] = /^\/(lease|history)\/(.+)$/s.exec(url.pathname) ?? []
  const isRead = method === 'GET' || method === 'HEAD'
  const isWrite = resource === 'lease' && (method === 'PUT' || method === 'DELETE')
  if (tail !== undefined && (isRead || isWrite)) {
    const slot = decode(tail)
    return slot === undefined ? { kind: 'other' } : { kind: 'slot', isWrite, slot, holder: findHolder(request) }
  }
  if (url.pathname !== '/leases' || !isRead || url.searchParams.has('slot')) return { kind: 'other' }
  if (request.row === 'queries' || request.row === 'paths') return undefined
  const prefixes = url.searchParams.getAll('prefix')
  return prefixes.length <= 1 ? { kind: 'copies', prefix: prefixes[0] ?? '' } : undefined
}

/** Statuses of requests that were rejected before their rights were checked. */
const EARLY = [400, 401, 413, 429]

const checkStatus = (rights: TokenRights, action: Action, status: number): string[] => {
  if (action.kind === 'other') return []
  const text = action.kind === 'slot' ? action.slot : action.prefix
  const isWrite = action.kind === 'slot' && action.isWrite
  const isPermitted = isInside(rights, text) && (rights.access === 'write' || !isWrite)
  if (!isPermitted)
    return status === 403 || EARLY.includes(status) ? [] : [`rights: ${status} outside the rights of a token`]
  const holder = action.kind === 'slot' && action.isWrite ? action.holder : undefined
  const isForeign = holder !== undefined && !isOwnHolder(rights, holder)
  if (isForeign) return [403, ...EARLY].includes(status) ? [] : [`rights: ${status} for the holder of another token`]
  const isUnclear = isWrite && rights.holders !== null && holder === undefined
  return status === 403 && !isUnclear ? ['rights: 403 within the rights of a token'] : []
}

/** The slots whose state a body shows. */
const findShownSlots = (body: unknown): string[] => {
  const { slot, leases, results } = Object(body)
  const entries: unknown[] = [...(Array.isArray(leases) ? leases : []), ...(Array.isArray(results) ? results : [])]
  const shown = entries.map(Object).filter(({ error }) => error !== 'forbidden')
  return [slot, ...shown.map(entry => entry.slot)].filter(text => typeof text === 'string')
}

/** The renewals that a batch reports as done, although the token may not write these slots. */
const checkRenewals = (rights: TokenRights, body: unknown): string[] => {
  const { results } = Object(body)
  if (!Array.isArray(results)) return []
  const granted = results.map(Object).filter(({ status }) => status === 200)
  return granted.length > 0 && rights.access !== 'write' ? ['rights: a renewal outside the rights of a token'] : []
}

/** How a response contradicts the rights of the token of its request. */
export const findRightsViolations = (rights: TokenRights, request: FuzzRequest, response: HttpResponse): string[] => {
  const { status } = response
  const [authorization, ...more] = findHeaders(request, 'authorization')
  if (request.raw || more.length > 0) return []
  const body = parseJson(response.text)
  const isShown = status === 200 && request.method !== 'HEAD'
  const shown = isShown && findShownSlots(body).some(slot => !isInside(rights, slot))
  const violations = [
    ...(shown ? ['rights: the state of a slot outside the rights of a token'] : []),
    ...(isShown ? checkRenewals(rights, body) : []),
    ...(status === 429 && !rights.isLimited ? ['rights: 429 below the request limit'] : []),
  ]
  if (authorization !== `Bearer ${rights.token}`) return violations
  const isPublic = request.method === 'OPTIONS' || URL.parse(`http://witness${request.target}`)?.pathname === '/healthz'
  if (rights.access === 'none') {
    const isRejected = isPublic || EARLY.includes(status)
    return isRejected ? violations : [...violations, `rights: ${status} for an expired token`]
  }
  if (status === 401) return [...violations, 'rights: 401 for a token of a policy']
  const action = isPublic ? undefined : toAction(request)
  return action ? [...violations, ...checkStatus(rights, action, status)] : violations
}

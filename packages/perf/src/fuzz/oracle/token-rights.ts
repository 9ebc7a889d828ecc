import type { HttpResponse } from '@pool/test-kit/http1.ts'
import type { FuzzRequest } from '../request.ts'
import type { TokenRights } from '../witness-tokens.ts'

/** What a request asks for, as a server reads it. Holder and slots: undefined if it is unclear. */
type Action =
  | { readonly kind: 'slot'; readonly isWrite: boolean; readonly slot: string; readonly holder: string | undefined }
  | { readonly kind: 'copies'; readonly prefix: string }
  | { readonly kind: 'exact'; readonly slots: readonly string[] }
  | { readonly kind: 'renewals'; readonly slots: readonly string[]; readonly holder: string }
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

const toRenewals = (request: FuzzRequest): Action | undefined => {
  const text = request.body?.toString('utf8') ?? ''
  const { holder, leases } = Object(parseJson(text))
  const slots: unknown[] = Array.isArray(leases) ? leases.map(lease => Object(lease).slot) : []
  const isClear = text.split('"holder"').length === 2 && text.split('"slot"').length === slots.length + 1
  return isClear && typeof holder === 'string' && slots.every(slot => typeof slot === 'string')
    ? { kind: 'renewals', slots, holder }
    : undefined
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
  if (url.pathname === '/leases/renew' && method === 'POST') return toRenewals(request)
  if (url.pathname !== '/leases' || !isRead) return { kind: 'other' }
  if (request.row === 'queries' || request.row === 'paths') return undefined
  const slots = url.searchParams.getAll('slot')
  if (slots.length > 0) return { kind: 'exact', slots }
  const prefixes = url.searchParams.getAll('prefix')
  return prefixes.length <= 1 ? { kind: 'copies', prefix: prefixes[0] ?? '' } : undefined
}

/** Statuses of requests that were rejected before their rights were checked. */
const EARLY = [400, 401, 413, 429]

/** A request about several slots is rejected if none is permitted; otherwise each slot has its own result. */
const checkEach = (isPermitted: readonly boolean[], status: number, entries: unknown): string[] => {
  if (EARLY.includes(status)) return []
  if (!isPermitted.includes(true)) return status === 403 ? [] : [`rights: ${status} outside the rights of a token`]
  if (status === 403) return ['rights: 403 within the rights of a token']
  const errors = Array.isArray(entries) ? entries.map(entry => Object(entry).error === 'forbidden') : []
  const isExact =
    status !== 200 || entries === undefined || isPermitted.every((permitted, index) => errors[index] === !permitted)
  return isExact ? [] : ['rights: a result for another slot than those that a token permits']
}

const checkStatus = (rights: TokenRights, action: Action, status: number, body: unknown): string[] => {
  if (action.kind === 'other') return []
  if (action.kind === 'exact')
    return checkEach(
      action.slots.map(slot => isInside(rights, slot)),
      status,
      Object(body).leases,
    )
  if (action.kind === 'renewals') {
    const canRenew = rights.access === 'write' && isOwnHolder(rights, action.holder)
    return checkEach(
      action.slots.map(slot => canRenew && isInside(rights, slot)),
      status,
      Object(body).results,
    )
  }
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

/** How a response contradicts the rights of the token of its request. */
export const findRightsViolations = (rights: TokenRights, request: FuzzRequest, response: HttpResponse): string[] => {
  const { status } = response
  const [authorization, ...more] = findHeaders(request, 'authorization')
  // The path is a part of the URL that Host begins.
  if (request.raw || more.length > 0 || findHeaders(request, 'host').length > 0) return []
  const body = parseJson(response.text)
  const isShown = status === 200 && request.method !== 'HEAD'
  const shown = isShown && findShownSlots(body).some(slot => !isInside(rights, slot))
  const violations = [
    ...(shown ? ['rights: the state of a slot outside the rights of a token'] : []),
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
  return action ? [...violations, ...checkStatus(rights, action, status, body)] : violations
}

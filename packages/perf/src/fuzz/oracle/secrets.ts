import type { HttpResponse } from '@pool/test-kit/http1.ts'
import type { FuzzRequest } from '../request.ts'

const toHexPairs = (text: string): string[] => [...Buffer.from(text)].map(byte => byte.toString(16).padStart(2, '0'))

/** The base64 of a text at each of the three offsets in a longer text, without the characters at its ends. */
const toBase64Parts = (text: string): string[] =>
  [0, 1, 2].map(shift => {
    const bytes = Buffer.from('\0'.repeat(shift) + text)
    const whole = bytes.toString('base64url').replaceAll('-', '+').replaceAll('_', '/')
    const [from, to] = [shift === 0 ? 0 : shift === 1 ? 2 : 3, Math.floor((bytes.length * 8) / 6)]
    return whole.slice(from, to)
  })

const escaped = (text: string): string => text.replace(/[.*+?^${}()|[\]\\/]/g, '\\$&')

/** Matches a mark plain, percent-encoded, in JSON escapes, in hex and in base64, ignoring case. */
export const createMarkPattern = (mark: string): RegExp => {
  const hex = toHexPairs(mark)
  const spellings = [
    mark,
    hex.map(pair => `%${pair}`).join(''),
    hex.map(pair => `\\u00${pair}`).join(''),
    hex.join(''),
    ...toBase64Parts(mark),
  ]
  return new RegExp(spellings.map(escaped).join('|'), 'i')
}

const uuid = /[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/gi
/** A UUID in base64 has at least 48 characters. */
const base64Run = /[A-Za-z0-9+/_-]{47,4000}/g

/** The UUIDs in a text, also inside base64. */
export const findUuids = (text: string): string[] => {
  const plain = text.match(uuid) ?? []
  const hidden = (text.match(base64Run) ?? []).flatMap(run =>
    [0, 1, 2, 3].flatMap(from => Buffer.from(run.slice(from), 'base64url').toString('latin1').match(uuid) ?? []),
  )
  return [...plain, ...hidden].map(found => found.toLowerCase())
}

interface KnownSecrets {
  readonly mark: RegExp
  readonly isToken: (uuid: string) => boolean
}

/** The secret in a text; null: there is none. */
export const findLeak = ({ mark, isToken }: KnownSecrets, text: string): string | null => {
  if (mark.test(text)) return 'a marked secret'
  return findUuids(text).some(isToken) ? 'a token of a client' : null
}

const ASSET_BYTES = 300_000

/** Secrets in a response. Only the response that grants a name or a deployment may contain its token, once. */
export const findLeaks = (known: KnownSecrets, { method, target }: FuzzRequest, response: HttpResponse): string[] => {
  // Scripts and style sheets of the API reference are files of a package.
  const body = response.body.length > ASSET_BYTES ? '' : response.body.toString('utf8')
  const head = [...response.headers].map(([name, value]) => `${name}: ${value}`).join('\n')
  const [, granted] = /(reserve|deployments)/i.exec(decodeSafely(target)) ?? []
  const field = granted?.toLowerCase() === 'reserve' ? 'reservationToken' : 'deploymentToken'
  const isGrant = granted !== undefined && method === 'POST' && response.status === 201
  const withoutGrant = isGrant ? body.replace(new RegExp(`"${field}":"[^"]*"`), '') : body
  return [head, withoutGrant].flatMap(text => {
    const leak = findLeak(known, text)
    return leak === null ? [] : [`secret: ${leak}`]
  })
}

const decodeSafely = (target: string): string => {
  try {
    return decodeURIComponent(target)
  } catch {
    return target
  }
}

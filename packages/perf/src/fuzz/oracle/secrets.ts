import type { Answer } from '../wire/answer.ts'
import type { FuzzRequest } from '../wire/request.ts'

const hexOf = (text: string): string[] => [...Buffer.from(text)].map(byte => byte.toString(16).padStart(2, '0'))

/** The letters of base64 that a text gives wherever in a longer one it begins: those of its seams are left off. */
const base64Of = (text: string): string[] =>
  [0, 1, 2].map(shift => {
    const bytes = Buffer.from('\0'.repeat(shift) + text)
    const whole = bytes.toString('base64url').replaceAll('-', '+').replaceAll('_', '/')
    const [from, to] = [shift === 0 ? 0 : shift === 1 ? 2 : 3, Math.floor((bytes.length * 8) / 6)]
    return whole.slice(from, to)
  })

const escaped = (text: string): string => text.replace(/[.*+?^${}()|[\]\\/]/g, '\\$&')

/** Finds a mark as it is, and as percent encoding, JSON escapes, hex and base64 spell it; in any case of its letters. */
export const markPattern = (mark: string): RegExp => {
  const hex = hexOf(mark)
  const spellings = [
    mark,
    hex.map(pair => `%${pair}`).join(''),
    hex.map(pair => `\\u00${pair}`).join(''),
    hex.join(''),
    ...base64Of(mark),
  ]
  return new RegExp(spellings.map(escaped).join('|'), 'i')
}

const uuid = /[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/gi
/** A UUID in base64 has 48 letters at least. */
const base64Run = /[A-Za-z0-9+/_-]{47,4000}/g

/** UUIDs of a text, those inside of base64 too. */
export const uuidsIn = (text: string): string[] => {
  const plain = text.match(uuid) ?? []
  const hidden = (text.match(base64Run) ?? []).flatMap(run =>
    [0, 1, 2, 3].flatMap(from => Buffer.from(run.slice(from), 'base64url').toString('latin1').match(uuid) ?? []),
  )
  return [...plain, ...hidden].map(found => found.toLowerCase())
}

interface Known {
  readonly mark: RegExp
  readonly isToken: (uuid: string) => boolean
}

/** Why a text may not leave the service; null: it may. */
export const leakIn = ({ mark, isToken }: Known, text: string): string | null => {
  if (mark.test(text)) return 'a marked secret'
  return uuidsIn(text).some(isToken) ? 'a reservation token' : null
}

const ASSET_BYTES = 300_000

/** Secrets in an answer. Its own caller is told the token of a reservation, once, by the answer to reserve. */
export const leaks = (known: Known, { method, target }: FuzzRequest, answer: Answer): string[] => {
  // Script and style sheets of the reference page: files of a package.
  const body = answer.body.length > ASSET_BYTES ? '' : answer.body.toString('utf8')
  const head = [...answer.headers].map(([name, value]) => `${name}: ${value}`).join('\n')
  const isGrant = method === 'POST' && answer.status === 201 && /reserve/i.test(decodeSafely(target))
  const told = isGrant ? body.replace(/"reservationToken":"[^"]*"/, '') : body
  return [head, told].flatMap(text => {
    const leak = leakIn(known, text)
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

import type { RefusalScope } from '../../domain/result.ts'

/**
 * What the errors of the API are about, as its users report them: Cloudflare documents no list of codes. The first row whose
 * codes or text fit counts. Statuses 401, 403 and 404 without a code of a record are about the token or the zone's id.
 */
const REFUSALS: readonly {
  readonly scope: RefusalScope
  readonly codes?: readonly (number | [number, number])[]
  readonly text?: RegExp
}[] = [
  // "Record quota exceeded." The quota of tags (9300) is about a record.
  { scope: 'room', codes: [81_045], text: /record quota/i },
  // "Please wait and consider throttling your request speed."
  { scope: 'account', codes: [971, 10_100], text: /throttl|rate limit/i },
  // "Use of this API has been limited to the Cloudflare Dashboard": zones below some top-level domains.
  { scope: 'zone', codes: [1038], text: /limited to the cloudflare dashboard/i },
  // 1004 is "DNS Validation Error", whose cause is in its chain.
  { scope: 'record', codes: [1004, [9_000, 9_099], 9_101, 9_300, [81_000, 81_999]] },
]

export const findScope = (code: number, text: string): RefusalScope =>
  REFUSALS.find(
    ({ codes, text: pattern }) =>
      codes?.some(known => (typeof known === 'number' ? known === code : known[0] <= code && code <= known[1])) ||
      pattern?.test(text),
  )?.scope ?? 'unknown'

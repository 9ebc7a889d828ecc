import { accepted, rejected, unavailable, type Verdict } from './result.ts'

/** The body of an answer to ListBuckets, as far as it counts. */
export type ListAnswer =
  | { readonly kind: 'listing'; readonly owner: string }
  | { readonly kind: 'error'; readonly code: string }
  | { readonly kind: 'other' }

/** Who Ceph's gateway says owns the buckets that it lists for a request without a signature. */
const ANONYMOUS = 'anonymous'

/** Codes by which S3 refuses credentials (Amazon S3 API Reference, "Error responses"; UserSuspended is Ceph's). */
const refusals: ReadonlyMap<string, string> = new Map([
  ['InvalidAccessKeyId', 'The object storage does not know this access key. Is it of this project, and complete?'],
  ['SignatureDoesNotMatch', 'The secret key does not belong to this access key. Is it complete?'],
  [
    'AccessDenied',
    'The object storage denies these keys the list of buckets: they are wrong, or good and restricted. A deployment needs keys that may list and create buckets.',
  ],
  ['UserSuspended', 'The owner of these keys is suspended at the object storage.'],
  ['AccountProblem', 'The object storage has a problem with the account of these keys; ask its support.'],
  ['ExpiredToken', 'These keys have expired; issue new ones.'],
  ['InvalidToken', 'These keys are temporary ones, which do not work alone; issue permanent ones.'],
  ['InvalidSecurity', 'The object storage says that these keys are not valid.'],
])

/** What else a code says: nothing of the keys. */
const excuses: ReadonlyMap<string, string> = new Map([
  [
    'RequestTimeTooSkewed',
    'The clock of this service and that of the object storage differ too much for a signature to count. The keys are not at fault; the clocks must be set.',
  ],
  ['SlowDown', 'The object storage asks for fewer requests. Try again later.'],
])

const ofStatus = (status: number): Verdict => {
  if (status >= 300 && status < 400) {
    return unavailable('The object storage answered with a redirect, which is never followed with keys.')
  }
  if (status === 429) return unavailable('The object storage asks for fewer requests. Try again later.')
  if (status >= 500) return unavailable(`The object storage failed (status ${status}). Try again later.`)
  if (status === 401 || status === 403) return rejected('The object storage refuses these keys.')
  return unavailable(`The object storage did not answer as S3 does (status ${status}). The keys were not checked.`)
}

/** What an answer to a signed ListBuckets says of the keys that signed it. */
export const verdictOf = (status: number, answer: ListAnswer): Verdict => {
  if (status === 200 && answer.kind === 'listing') {
    return answer.owner !== '' && answer.owner !== ANONYMOUS
      ? accepted('The object storage accepts these keys.')
      : unavailable('The object storage answered as if nobody had signed the request. The keys were not checked.')
  }
  const code = answer.kind === 'error' ? answer.code : ''
  const excuse = excuses.get(code)
  if (excuse && status >= 400) return unavailable(excuse)
  // Some refusals come with 400. A redirect, an overload or a failure decides nothing, whatever code it carries.
  const refusal = status >= 400 && status < 500 && status !== 429 ? refusals.get(code) : undefined
  return refusal ? rejected(`${refusal} (${code})`) : ofStatus(status)
}

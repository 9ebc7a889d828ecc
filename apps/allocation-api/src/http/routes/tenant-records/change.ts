import type { DnsState } from '@pool/contract'
import type { Context } from 'hono'
import { hashRecordToken } from '../../../lib/token.ts'
import type { Refusal, SetChange, TenantRecords } from '../../../records/domain/types.ts'
import { parseCredential } from '../../operator-auth.ts'
import { type ErrorOutcome, getCaller, type HttpEnv, RETRY_AFTER_S, sendError } from '../../request.ts'

/** Clients wait 30 s for a response. */
const WAIT_MS = 20_000
/** Of a response that is about several changes. */
const MAX_SENTENCES = 5

const FORM = /^pdr_[A-Za-z0-9_-]{43}$/

const NO_TOKEN: ErrorOutcome = {
  kind: 'unauthorized',
  detail:
    'Send a records token as Authorization: Bearer <token>, as the password of Basic, or as X-Api-Key. This one is missing, unknown, deleted or expired, or its name was released.',
}

export const rejectToken = (c: Context<HttpEnv>): Response => sendError(c, NO_TOKEN)

/** What has the form of no token needs no lookup. */
const readTokenDigest = (c: Context<HttpEnv>): Buffer | null => {
  const authorization = c.req.header('Authorization')
  const token = authorization === undefined ? c.req.header('X-Api-Key') : parseCredential(authorization)
  return token && FORM.test(token) ? hashRecordToken(token) : null
}

type TenantHandler = (c: Context<HttpEnv>, tokenDigest: Buffer) => Response | Promise<Response>

/** A handler of what only the holder of a records token may do. */
export const forTenant =
  (handle: TenantHandler) =>
  (c: Context<HttpEnv>): Response | Promise<Response> => {
    const digest = readTokenDigest(c)
    return digest ? handle(c, digest) : rejectToken(c)
  }

/** Of several, the response has the code of the first. */
export const sendRefusals = (c: Context<HttpEnv>, refusals: readonly [Refusal, ...Refusal[]]): Response => {
  const sentences = refusals.slice(0, MAX_SENTENCES).map(({ detail }) => detail)
  const more = refusals.length - sentences.length
  return sendError(c, {
    kind: refusals[0].kind,
    detail: [...sentences, ...(more > 0 ? [`${more} more changes are rejected.`] : [])].join(' '),
  })
}

const toPending = ({ detail }: DnsState): ErrorOutcome => ({
  kind: 'dns-pending',
  detail: `The change is stored. ${detail ?? 'The DNS provider has not confirmed it yet.'} Repeat the request until it succeeds.`,
  retryAfterSeconds: RETRY_AFTER_S,
})

export interface ChangeRequest {
  readonly records: TenantRecords
  readonly tokenDigest: Buffer
  readonly changes: readonly SetChange[]
  /** Whether the response means that the DNS provider has the changes. */
  readonly waits: boolean
  /** Whether one rejected change keeps the others from being applied. */
  readonly mode: 'all' | 'each'
}

/** Changes records, and sends the error, or the response of `respond` if there is none. */
export const changeRecords = async (
  c: Context<HttpEnv>,
  { records, tokenDigest, changes, waits, mode }: ChangeRequest,
  respond: () => Response | Promise<Response>,
): Promise<Response> => {
  const options = { mode, waitMs: waits ? WAIT_MS : null }
  const outcome = await records.change(tokenDigest, changes, options, getCaller(c))
  if (outcome.kind === 'unauthorized') return rejectToken(c)
  if (outcome.kind === 'rate-limited') {
    const { retryAfterSeconds } = outcome
    const detail = `Too many writes to the records of this name; retry in ${retryAfterSeconds} s.`
    return sendError(c, { ...outcome, detail })
  }
  const [first, ...rest] = outcome.refusals
  if (first) return sendRefusals(c, [first, ...rest])
  if (outcome.kind === 'changed' && waits && outcome.dns.status !== 'published')
    return sendError(c, toPending(outcome.dns))
  c.env.outcome = 'changed'
  return respond()
}

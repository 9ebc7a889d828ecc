import * as z from 'zod'
import { timestamp } from './common.ts'
import { leaseRule } from './lease-problem.ts'

/** A Workers KV key has at most 512 bytes of UTF-8, six of which are the prefix `lease:`. */
export const MAX_SLOT_BYTES = 506

/** Seconds. */
export const LEASE_TTL = { default: 30, min: 1, max: 86_400 } as const

const utf8 = new TextEncoder()

/** The name of a lease, percent-decoded: any text of 1 to 506 bytes in UTF-8. */
export const slot = z
  .string()
  .refine(text => text !== '' && text.isWellFormed() && utf8.encode(text).length <= MAX_SLOT_BYTES)
  .meta({ description: 'The name of a lease; 1 to 506 bytes in UTF-8.', example: 'region-pair/primary' })

const holderRule = leaseRule(
  'invalid-holder',
  'holder must be 1 to 253 printable ASCII characters without a leading or trailing space.',
)

/** The holder of a lease: 1 to 253 printable ASCII characters without a leading or trailing space. */
export const holder = z
  .string(holderRule)
  .regex(/^[!-~](?:[ -~]{0,251}[!-~])?$/, holderRule)
  .meta({ description: 'The holder of the lease; unique to one controller.', example: 'region-a/controller-0' })

const ttlRule = leaseRule('invalid-ttl', `ttlSeconds must be a number from ${LEASE_TTL.min} to ${LEASE_TTL.max}.`)

/** The duration of a lease in seconds, with millisecond precision. */
const ttlSeconds = z.number(ttlRule).min(LEASE_TTL.min, ttlRule).max(LEASE_TTL.max, ttlRule).default(LEASE_TTL.default)

/**
 * Counts the successful writes of a slot, including releases: a fencing token that never repeats and never decreases. At
 * most 2^53-1, so that every client can represent it exactly.
 */
export const generation = z.int().min(0).meta({ description: 'Fencing token: increases with every successful write.' })

const never = z.literal('')

/** A lease. In a released slot, every field except the generation is `""`. */
export const lease = z
  .object({
    /** A lease imported from an older deployment may have any text here. */
    holder: z.string(),
    acquiredAt: z.union([timestamp, never]),
    expiresAt: z.union([timestamp, never]),
    generation,
  })
  .meta({ id: 'Lease' })
export type Lease = z.infer<typeof lease>

/**
 * The body of a PUT. The order of the fields is the order of validation. `acquire` takes a free or expired slot, or renews
 * the own lease; `renew` only renews.
 */
export const putLeaseRequest = z
  .object(
    {
      holder: holder.optional(),
      ttlSeconds,
      op: z.enum(['acquire', 'renew'], leaseRule('invalid-op', 'op must be "acquire" or "renew".')).default('acquire'),
    },
    leaseRule('invalid-json', 'The body must be a JSON object, or absent.'),
  )
  .meta({ id: 'PutLeaseRequest' })
export type PutLeaseRequest = z.infer<typeof putLeaseRequest>

const limitRule = leaseRule('invalid-limit', 'limit must be a whole number from 1 to 1000.')
const prefixRule = leaseRule('invalid-prefix', `prefix must be at most ${MAX_SLOT_BYTES} bytes.`)
const cursorRule = leaseRule('invalid-cursor', 'cursor must be the nextCursor of an earlier response.')

/** A page is one list operation of Workers KV, which returns at most 1,000 keys. */
export const leaseListQuery = z.object({
  prefix: z
    .string()
    .refine(text => text.isWellFormed() && utf8.encode(text).length <= MAX_SLOT_BYTES, prefixRule)
    .default(''),
  limit: z
    .string()
    .regex(/^[0-9]{1,4}$/, { ...limitRule, abort: true })
    .transform(Number)
    .refine(n => n >= 1 && n <= 1_000, limitRule)
    .default(1_000),
  cursor: z
    .string()
    .regex(/^[!-~]{1,2048}$/, cursorRule)
    .optional(),
})
export type LeaseListQuery = z.infer<typeof leaseListQuery>

/**
 * The leases in the Workers KV copy, for operators. The copy is written asynchronously and eventually consistent: a change
 * of holder reaches it within seconds and other locations after a minute or more; `expiresAt` of a renewed lease lags by
 * another minute. Do not use it for decisions; `GET /lease/<slot>` is authoritative.
 */
export const leaseList = z
  .object({
    consistency: z.literal('eventual'),
    detail: z.string(),
    leases: z.array(lease.extend({ slot: z.string() })),
    nextCursor: z.string().optional(),
  })
  .meta({ id: 'LeaseList' })
export type LeaseList = z.infer<typeof leaseList>

/**
 * A change of a slot's holder or of its acquisition time, or an event that affects it. A renewal is not a transition.
 *
 * - `adopted`: taken over from a system that kept its leases in Workers KV, with the generation found there.
 * - `jumped`: the generation jumped, after the loss of the slot's storage or after a drain.
 * - `foreign-writer`: another system wrote to the slot's record in Workers KV; the generation jumped above it.
 * - `clock-set-back`: the clock of the witness was set back by more than a minute; the lease has its whole TTL again.
 */
export const leaseTransition = z
  .object({
    generation,
    at: timestamp,
    event: z.enum(['acquired', 'released', 'adopted', 'jumped', 'foreign-writer', 'clock-set-back']),
    /** The client that requested it. */
    by: z.union([holder, never]),
    from: z.union([holder, never]),
    to: z.union([holder, never]),
    /** The name of the token's policy, or a fingerprint: `sha256:` and 8 hex digits. Empty if it is unknown. */
    token: z.string(),
  })
  .meta({ id: 'LeaseTransition' })
export type LeaseTransition = z.infer<typeof leaseTransition>

/** Newest first. Bounded: old transitions are deleted. */
export const leaseHistory = z
  .object({ slot: z.string(), transitions: z.array(leaseTransition) })
  .meta({ id: 'LeaseHistory' })
export type LeaseHistory = z.infer<typeof leaseHistory>

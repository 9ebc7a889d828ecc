import * as z from 'zod'
import { leaseFault } from './lease-problem.ts'
import { timestamp } from './time.ts'

/** Workers KV keys hold 512 bytes of UTF-8; six of them are the prefix `lease:`. */
export const SLOT_MAX_BYTES = 506

/** Seconds. */
export const LEASE_TTL = { default: 30, min: 1, max: 86_400 } as const

const utf8 = new TextEncoder()

/** The name of a lease, percent-decoded: any text of 1 to 506 bytes in UTF-8. */
export const slot = z
  .string()
  .refine(text => text !== '' && text.isWellFormed() && utf8.encode(text).length <= SLOT_MAX_BYTES)
  .meta({ description: 'The name of a lease; 1 to 506 bytes in UTF-8.', example: 'region-pair/primary' })

const holderRule = leaseFault(
  'invalid-holder',
  'holder must be 1 to 253 printable ASCII characters, no space at an end.',
)

/** Who holds a lease: 1 to 253 printable ASCII characters without a space at either end. */
export const holder = z
  .string(holderRule)
  .regex(/^[!-~](?:[ -~]{0,251}[!-~])?$/, { error: holderRule })
  .meta({ description: 'Who holds the lease; unique to one controller.', example: 'region-a/controller-0' })

const ttlRule = leaseFault('invalid-ttl', `ttlSeconds must be a number from ${LEASE_TTL.min} to ${LEASE_TTL.max}.`)

/** How long a lease is granted for, in seconds; fractions count to the millisecond. */
const ttlSeconds = z.number(ttlRule).min(LEASE_TTL.min, ttlRule).max(LEASE_TTL.max, ttlRule).default(LEASE_TTL.default)

/**
 * Counts the successful writes of a slot, releases included: a fencing token that never repeats and never goes back.
 * At most 2^53-1, so that it is exact in every client's numbers.
 */
export const generation = z.int().min(0).meta({ description: 'Fencing token: rises with every successful write.' })

const never = z.literal('')

/** A lease as it is shown. A slot that was released has `""` for all but its generation. */
export const lease = z
  .object({
    /** Who holds it; of a lease that an older deployment granted, whatever that deployment took for a name. */
    holder: z.string(),
    acquiredAt: z.union([timestamp, never]),
    expiresAt: z.union([timestamp, never]),
    generation,
  })
  .meta({ id: 'Lease' })
export type Lease = z.infer<typeof lease>

/**
 * What a PUT carries. The order of the fields is the order in which faults are decided. `acquire` takes a free or
 * expired slot or goes on holding; `renew` only goes on.
 */
export const putLeaseRequest = z
  .object(
    {
      holder: holder.optional(),
      ttlSeconds,
      op: z.enum(['acquire', 'renew'], leaseFault('invalid-op', 'op must be "acquire" or "renew".')).default('acquire'),
    },
    leaseFault('invalid-json', 'The body must be a JSON object, or absent.'),
  )
  .meta({ id: 'PutLeaseRequest' })
export type PutLeaseRequest = z.infer<typeof putLeaseRequest>

const limitRule = leaseFault('invalid-limit', 'limit must be a whole number from 1 to 1000.')
const prefixRule = leaseFault('invalid-prefix', `prefix must be at most ${SLOT_MAX_BYTES} bytes.`)
const cursorRule = leaseFault('invalid-cursor', 'cursor must be the nextCursor of an earlier answer.')

/** A page is one list operation of Workers KV, which gives 1,000 keys at most. */
export const leaseListQuery = z.object({
  prefix: z
    .string()
    .refine(text => text.isWellFormed() && utf8.encode(text).length <= SLOT_MAX_BYTES, { error: prefixRule })
    .default(''),
  limit: z
    .string()
    .regex(/^[0-9]{1,4}$/, { error: limitRule, abort: true })
    .transform(Number)
    .refine(n => n >= 1 && n <= 1_000, { error: limitRule })
    .default(1_000),
  cursor: z
    .string()
    .regex(/^[!-~]{1,2048}$/, { error: cursorRule })
    .optional(),
})
export type LeaseListQuery = z.infer<typeof leaseListQuery>

/**
 * What is held where, for operators, from the copy in Workers KV. The copy is eventually consistent and written behind:
 * a change of holder is in it after seconds, and seen elsewhere after a minute or more; `expiresAt` of a lease that is
 * being renewed lags by another minute. Decide nothing by it: `GET /lease/<slot>` is exact.
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
 * A change of who holds a slot, or of since when. `adopted`: taken over from Workers KV, as an older deployment left it
 * or after the objects were lost. Renewals are no transitions.
 */
export const leaseTransition = z
  .object({
    generation,
    at: timestamp,
    event: z.enum(['acquired', 'released', 'adopted']),
    /** Who asked for it. */
    by: z.union([holder, never]),
    from: z.union([holder, never]),
    to: z.union([holder, never]),
  })
  .meta({ id: 'LeaseTransition' })
export type LeaseTransition = z.infer<typeof leaseTransition>

/** Newest first; bounded: old ones are dropped. */
export const leaseHistory = z
  .object({ slot: z.string(), transitions: z.array(leaseTransition) })
  .meta({ id: 'LeaseHistory' })
export type LeaseHistory = z.infer<typeof leaseHistory>

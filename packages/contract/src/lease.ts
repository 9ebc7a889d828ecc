import * as z from 'zod'
import { maxCharacters, ONE_LINE, timestamp, wholeNumberText } from './common.ts'
import { leaseErrorCode, leaseRule } from './lease-problem.ts'

/** A Workers KV key has at most 512 bytes of UTF-8, six of which are the prefix `lease:`. */
export const MAX_SLOT_BYTES = 506

/** The most slots in one request. */
export const MAX_SLOTS = 100

/** Seconds. `default` applies unless MAX_WAIT_SECONDS is set. */
export const WAIT = { default: 25, min: 1, max: 60 } as const

/** Seconds. */
export const LEASE_TTL = { default: 30, min: 1, max: 86_400 } as const

const utf8 = new TextEncoder()

const slotRule = leaseRule('invalid-slot', `slot must be text of 1 to ${MAX_SLOT_BYTES} bytes in UTF-8.`)

/** The name of a lease, percent-decoded: any text of 1 to 506 bytes in UTF-8. */
export const slot = z
  .string(slotRule)
  .min(1, slotRule)
  .check(maxCharacters(MAX_SLOT_BYTES, slotRule))
  .refine(text => text.isWellFormed() && utf8.encode(text).length <= MAX_SLOT_BYTES, slotRule)
  .meta({ description: 'The name of a lease; 1 to 506 bytes in UTF-8.', example: 'region-pair/primary' })

const holderRule = leaseRule(
  'invalid-holder',
  'holder must be 1 to 253 printable ASCII characters without a leading or trailing space.',
)

export const HOLDER = /^[!-~](?:[ -~]{0,251}[!-~])?$/

/** The holder of a lease: 1 to 253 printable ASCII characters without a leading or trailing space. */
export const holder = z
  .string(holderRule)
  .regex(HOLDER, holderRule)
  .meta({ description: 'The holder of the lease; unique to one controller.', example: 'region-a/controller-0' })

/** A holder, or empty for none. */
export const holderOrEmpty = z.string().regex(/^(?:[!-~](?:[ -~]{0,251}[!-~])?)?$/)

/**
 * `7`, `"7"` or `W/"7"`. A bare number is not an entity tag (RFC 9110 section 8.8.3), but clients of this API send it. The
 * groups are: the bare number, the mark of a weak tag, the number in quotes.
 */
export const GENERATION_TAG = /^(?:([0-9]+)|(W\/)?"([0-9]+)")$/

const ttlRule = leaseRule('invalid-ttl', `ttlSeconds must be a number from ${LEASE_TTL.min} to ${LEASE_TTL.max}.`)

/** The duration of a lease in seconds, with millisecond precision. */
const ttlSeconds = z
  .number(ttlRule)
  .min(LEASE_TTL.min, ttlRule)
  .max(LEASE_TTL.max, ttlRule)
  .default(LEASE_TTL.default)
  .meta({ format: 'double', description: 'The duration of the lease.' })

/**
 * Counts the successful writes of a slot, including releases: a fencing token that never repeats and never decreases. At
 * most 2^53-1, so that every client can represent it exactly.
 */
export const generation = z
  .int()
  .min(0)
  .meta({ format: 'int64', description: 'Fencing token: increases with every successful write.' })

/** In UTF-8. */
const MAX_VALUE_BYTES = 1_024

const valueRule = leaseRule(
  'invalid-value',
  `value must be text of at most ${MAX_VALUE_BYTES} bytes in UTF-8, without control characters.`,
)

/** What the holder shows to the readers of the lease, such as its address. Empty: no value. */
export const leaseValue = z
  .string(valueRule)
  .regex(new RegExp(`^${ONE_LINE}$`), valueRule)
  .check(maxCharacters(MAX_VALUE_BYTES, valueRule))
  .refine(text => text.isWellFormed() && utf8.encode(text).length <= MAX_VALUE_BYTES, valueRule)
  .meta({
    description:
      'Text for readers; at most 1,024 bytes in UTF-8, not a secret. A renewal without it keeps it, `""` removes it.',
    example: 'https://10.0.0.7:8443',
  })

/** RFC 3339 in UTC with `Z` and milliseconds, or empty. One pattern, because generators make a type of every alternative. */
const timestampOrEmpty = z
  .string()
  .regex(/^(?:[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{3}Z)?$/)
  .meta({ description: 'RFC 3339 in UTC, or empty.', example: '2026-01-31T12:00:00.000Z' })

/** A lease. In a released slot, every field except the generation is `""`, and `value` is absent. */
export const lease = z
  .object({
    /** A lease imported from an older deployment may have any text here. */
    holder: z.string(),
    acquiredAt: timestampOrEmpty,
    expiresAt: timestampOrEmpty,
    generation,
    value: z
      .string()
      .optional()
      .meta({ description: 'What the holder has set for readers. Absent: nothing.', example: 'https://10.0.0.7:8443' }),
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
      value: leaseValue.optional(),
    },
    leaseRule('invalid-json', 'The body must be a JSON object, or absent.'),
  )
  .meta({ id: 'PutLeaseRequest' })
export type PutLeaseRequest = z.infer<typeof putLeaseRequest>

/** The query of a read: `vacant` with `Prefer: wait` waits until the slot is vacant. */
export const readLeaseQuery = z.object({
  until: z.literal('vacant', leaseRule('invalid-until', 'until must be "vacant", or absent.')).optional(),
})

/** Why a write was rejected, or a read with If-Match: the value of `Lease-Conflict`. */
export const leaseConflict = z.enum(['generation', 'held', 'not-holder', 'expired']).meta({
  id: 'LeaseConflict',
  description:
    '`generation`: the current generation differs. `held`: another holder has an unexpired lease. `not-holder`: another holder has the lease, or none. `expired`: the lease to renew has expired.',
})
export type LeaseConflict = z.infer<typeof leaseConflict>

const remainingMs = z
  .int()
  .min(0)
  .meta({ description: 'Milliseconds until the lease expires; 0: it has expired. Absent: no client holds it.' })

const generationRule = leaseRule('invalid-generation', 'generation must be a whole number from 0 to 2^53-1.')
const leasesRule = leaseRule('invalid-leases', `leases must be a list of 1 to ${MAX_SLOTS} different slots.`)

/** The body of `POST /leases/renew`. The order of the fields is the order of validation. */
export const renewLeasesRequest = z
  .object(
    {
      holder,
      leases: z
        .array(
          z
            .object(
              { slot, generation: z.int(generationRule).min(0, generationRule).meta({ format: 'int64' }), ttlSeconds },
              leasesRule,
            )
            .meta({ id: 'LeaseRenewal' }),
          leasesRule,
        )
        .min(1, leasesRule)
        .max(MAX_SLOTS, { ...leasesRule, abort: true })
        .refine(leases => new Set(leases.map(lease => lease.slot)).size === leases.length, leasesRule)
        .meta({ description: `Different slots, at most ${MAX_SLOTS}.`, uniqueItems: true }),
    },
    leaseRule('invalid-json', 'The body must be a JSON object.'),
  )
  .meta({ id: 'RenewLeasesRequest' })
export type RenewLeasesRequest = z.infer<typeof renewLeasesRequest>

/**
 * The result of one renewal, with the status that a request for this slot alone would have returned. Not a discriminated
 * union: a discriminator of OpenAPI is text.
 */
export const renewalResult = z
  .union([
    z.object({ slot: z.string(), status: z.literal(200), lease, remainingMs }).meta({ id: 'RenewalGranted' }),
    z
      .object({
        slot: z.string(),
        status: z.literal(412),
        conflict: leaseConflict,
        lease,
        remainingMs: remainingMs.optional(),
      })
      .meta({ id: 'RenewalRejected' }),
    z
      .object({ slot: z.string(), status: z.literal([403, 500, 503]), error: leaseErrorCode })
      .meta({ id: 'RenewalFailed' }),
  ])
  .meta({ id: 'RenewalResult' })
export type RenewalResult = z.infer<typeof renewalResult>

/** One result for each lease of the request, in its order. */
export const renewLeasesResponse = z.object({ results: z.array(renewalResult) }).meta({ id: 'RenewalResults' })
export type RenewLeasesResponse = z.infer<typeof renewLeasesResponse>

const limitRule = leaseRule('invalid-limit', 'limit must be a whole number from 1 to 1000.')
const prefixRule = leaseRule('invalid-prefix', `prefix must be at most ${MAX_SLOT_BYTES} bytes.`)
const cursorRule = leaseRule('invalid-cursor', 'cursor must be the nextCursor of an earlier response.')
const drainedSlotsRule = leaseRule('invalid-slot', `slots must be a list of at most ${MAX_SLOTS} slots.`)
const drainedObjectsRule = leaseRule(
  'invalid-request',
  `objects must be a list of at most ${MAX_SLOTS} ids, each of 64 lower-case hexadecimal digits.`,
)

/**
 * The body of `POST /leases/drain`. Without names, a page of the slots that have a copy. `objects` are ids of Durable Objects,
 * for slots whose first copy was never written.
 */
export const drainLeasesRequest = z
  .object(
    {
      slots: z.array(slot, drainedSlotsRule).max(MAX_SLOTS, drainedSlotsRule).optional(),
      objects: z
        .array(z.string(drainedObjectsRule).regex(/^[0-9a-f]{64}$/, drainedObjectsRule), drainedObjectsRule)
        .max(MAX_SLOTS, drainedObjectsRule)
        .optional(),
      cursor: z
        .string(cursorRule)
        .regex(/^[!-~]{1,2048}$/, cursorRule)
        .optional(),
    },
    leaseRule('invalid-json', 'The body must be a JSON object, or absent.'),
  )
  .meta({ id: 'DrainLeasesRequest' })
export type DrainLeasesRequest = z.infer<typeof drainLeasesRequest>

export const drainLeasesResponse = z
  .object({
    drained: z.int().meta({ description: 'The number of slots whose copy is up to date and no longer changes.' }),
    pending: z
      .array(z.object({ slot: z.string(), reason: z.string() }).meta({ id: 'PendingSlot' }))
      .meta({ description: 'Slots to drain again later; by object id if the slot is unknown.' }),
    readableAt: timestampOrEmpty.meta({
      description: 'From then on, Workers KV is expected to return these copies everywhere.',
    }),
    nextCursor: z.string().optional(),
  })
  .meta({ id: 'DrainResult' })
export type DrainLeasesResponse = z.infer<typeof drainLeasesResponse>

/** A page is one list operation of Workers KV, which returns at most 1,000 keys. */
export const leaseListQuery = z.object({
  prefix: z
    .string()
    .check(maxCharacters(MAX_SLOT_BYTES, prefixRule))
    .refine(text => text.isWellFormed() && utf8.encode(text).length <= MAX_SLOT_BYTES, prefixRule)
    .default('')
    .meta({ description: 'Only slots that start with this text.' }),
  limit: wholeNumberText(1, 1_000, limitRule).default(1_000).meta({ description: 'Maximum number of leases.' }),
  cursor: z
    .string()
    .regex(/^[!-~]{1,2048}$/, cursorRule)
    .optional(),
})
export type LeaseListQuery = z.infer<typeof leaseListQuery>

const slotsRule = leaseRule('invalid-slot', `slot must occur at most ${MAX_SLOTS} times, for different slots.`)

/** The slots of an exact list. */
export const leaseStatusQuery = z.object({
  slot: z
    .array(slot)
    .min(1)
    .max(MAX_SLOTS, slotsRule)
    .refine(slots => new Set(slots).size === slots.length, slotsRule)
    .meta({
      description: `Different slots, at most ${MAX_SLOTS}. Not with prefix, limit or cursor.`,
      uniqueItems: true,
    }),
})

/**
 * The leases in the Workers KV copy, for operators. The copy is written asynchronously and eventually consistent: a change
 * of holder reaches it within seconds and other locations after a minute or more; `expiresAt` of a renewed lease lags by
 * ten minutes. Do not use it for decisions; `GET /lease/<slot>` is authoritative.
 */
export const leaseList = z
  .object({
    consistency: z.literal('eventual'),
    detail: z.string(),
    leases: z.array(lease.extend({ slot: z.string() }).meta({ id: 'ListedLease' })),
    nextCursor: z.string().optional(),
  })
  .meta({ id: 'LeaseList' })
export type LeaseList = z.infer<typeof leaseList>

/** The state of a slot, as a read of this slot alone would have returned it, or the error code of that response. */
export const leaseStatus = z
  .union([
    lease
      .extend({
        slot: z.string(),
        remainingMs: remainingMs.optional(),
        waiters: z.int().min(0).meta({ description: 'The number of reads that wait for a change of the lease.' }),
      })
      .meta({ id: 'SlotStatus' }),
    z.object({ slot: z.string(), error: leaseErrorCode }).meta({ id: 'SlotError' }),
  ])
  .meta({ id: 'LeaseStatus' })
export type LeaseStatus = z.infer<typeof leaseStatus>

/** The leases of the slots of the query, in its order. A slot that was never written has generation 0. */
export const leaseStatusList = z
  .object({ consistency: z.literal('exact'), leases: z.array(leaseStatus) })
  .meta({ id: 'LeaseStatusList' })
export type LeaseStatusList = z.infer<typeof leaseStatusList>

/**
 * A change of a slot's holder or of its acquisition time, or an event that affects it. A renewal is not a transition.
 *
 * - `adopted`: taken over from a system that kept its leases in Workers KV, with the generation found there.
 * - `jumped`: the generation jumped, after the loss or a rollback of the slot's storage or after a drain.
 * - `foreign-writer`: another system wrote to the slot's record in Workers KV; the generation jumped above it.
 * - `clock-set-back`: the clock of the witness was set back by more than a minute; the lease has its whole TTL again.
 */
export const leaseTransition = z
  .object({
    generation,
    at: timestamp,
    event: z.enum(['acquired', 'released', 'adopted', 'jumped', 'foreign-writer', 'clock-set-back']),
    /** The client that requested it. */
    by: holderOrEmpty,
    from: holderOrEmpty,
    to: holderOrEmpty,
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

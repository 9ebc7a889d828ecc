import * as z from 'zod'
import { fault } from './allocation-problem.ts'
import { fqdn, loadBalancerIP, subdomain } from './names.ts'
import { timestamp } from './time.ts'

/** JSON `null` for an optional field says the same as leaving it out. */
const absentIfNull = <Schema extends z.ZodType>(schema: Schema) =>
  z.preprocess(value => (value === null ? undefined : value), schema)

/**
 * Where the records of an active name stand. `pending`: not out yet, first attempt under way. `published`: the provider
 * has them. `failing`: at least one attempt failed; it is retried for ever, and `detail` says why it failed last.
 */
export const dnsState = z
  .object({ status: z.enum(['pending', 'published', 'failing']), detail: z.string().optional() })
  .meta({ id: 'DnsState' })
export type DnsState = z.infer<typeof dnsState>

const common = { poolDomain: z.string(), subdomain: z.string(), reservedAt: timestamp, createdBy: z.string() }

export const reservedAllocation = z
  .object({ ...common, state: z.literal('reserved'), expiresAt: timestamp })
  .meta({ id: 'ReservedAllocation' })
export const activeAllocation = z
  .object({
    ...common,
    state: z.literal('active'),
    sovereignFQDN: z.string(),
    loadBalancerIP: z.ipv4(),
    committedAt: timestamp,
    dns: dnsState,
  })
  .meta({ id: 'ActiveAllocation' })

/** A name that is taken. It never holds the reservation token: only the answer to reserve does. */
export const allocation = z
  .discriminatedUnion('state', [reservedAllocation, activeAllocation])
  .meta({ id: 'Allocation' })

export type ReservedAllocation = z.infer<typeof reservedAllocation>
export type ActiveAllocation = z.infer<typeof activeAllocation>
export type Allocation = z.infer<typeof allocation>

/** Free text that Postgres can hold and a log line can show: no control characters, no lone surrogates. */
const createdByRule = fault(
  'invalid-format',
  'createdBy must be text of at most 253 characters without control characters.',
)
const createdBy = z
  .string(createdByRule)
  .refine(text => [...text].length <= 253 && text.isWellFormed() && !/\p{Cc}/u.test(text), { error: createdByRule })

export const reserveRequest = z
  .object(
    { subdomain, createdBy: absentIfNull(createdBy.default('')) },
    fault('invalid-format', 'The body must be a JSON object with "subdomain".'),
  )
  .meta({ id: 'ReserveRequest' })

export const reserveResponse = reservedAllocation
  .extend({
    reservationToken: z.uuidv4().meta({ description: 'Proves the reservation at commit, renew and release.' }),
  })
  .meta({ id: 'ReserveResponse' })
export type ReserveResponse = z.infer<typeof reserveResponse>

/** Any text is taken here, so that a token that is no UUID is a mismatch (403) and not a fault of form. */
const reservationToken = z
  .string(fault('missing-token', 'reservationToken is required: the one in the answer to reserve.'))
  .min(1, fault('missing-token', 'reservationToken is required: the one in the answer to reserve.'))

/** The order of the fields is the order in which faults are decided. */
export const commitRequest = z
  .object(
    { subdomain, reservationToken, loadBalancerIP: absentIfNull(loadBalancerIP), sovereignFQDN: fqdn },
    fault('invalid-format', 'The body must be a JSON object with "subdomain".'),
  )
  .meta({ id: 'CommitRequest' })

const warned = { warning: z.literal('dns-pending'), detail: z.string() }

export const commitResponse = activeAllocation.meta({ id: 'CommitResponse' })
export const commitPendingResponse = activeAllocation.extend(warned).meta({ id: 'CommitPendingResponse' })

export const renewRequest = z
  .object({ subdomain, reservationToken }, fault('invalid-format', 'The body must be a JSON object with "subdomain".'))
  .meta({ id: 'RenewRequest' })

export const releaseRequest = z
  .object(
    {
      subdomain,
      reservationToken: absentIfNull(
        z
          .string(fault('token-mismatch', 'reservationToken is not the one of this allocation.'))
          .optional()
          .meta({ description: 'When given it must be the one of the allocation, or nothing changes.' }),
      ),
    },
    fault('invalid-format', 'The body must be a JSON object with "subdomain".'),
  )
  .meta({ id: 'ReleaseRequest' })

export const releaseResponse = z.object({ freed: allocation }).meta({ id: 'ReleaseResponse' })
export const releasePendingResponse = releaseResponse.extend(warned).meta({ id: 'ReleasePendingResponse' })

export const checkReasons = [
  'invalid-format',
  'unsupported-pool',
  'reserved',
  'reserved-state',
  'active-state',
] as const
export type CheckReason = (typeof checkReasons)[number]

export const checkResult = z
  .object({
    available: z.boolean(),
    reason: z.enum(checkReasons).optional().meta({ description: 'Why not; absent when available.' }),
    detail: z.string().optional().meta({
      description: 'Why not. Of an available name: what a deployment of it would be refused for, its bucket.',
    }),
    fqdn: z.string().optional().meta({ description: 'Present whenever the label and the pool are good.' }),
  })
  .meta({ id: 'CheckResult' })
export type CheckResult = z.infer<typeof checkResult>

export const reservedList = z.object({ reserved: z.array(z.string()) }).meta({ id: 'ReservedList' })

/** A whole number from 1. No upper bound: the answer is streamed. */
const limitRule = fault('invalid-limit', 'limit must be a whole number from 1 to 2147483647.')
export const limit = z
  .string()
  .regex(/^[0-9]{1,10}$/, { error: limitRule, abort: true })
  .transform(Number)
  .refine(n => n >= 1 && n <= 2_147_483_647, { error: limitRule })
  .meta({ type: 'integer', minimum: 1, description: 'At most so many; without it, all of them.' })

/** Opaque to clients: pass back the `nextCursor` of the answer before. */
export const cursorOf = (position: string): string => btoa(position).replaceAll('=', '')

const cursorRule = fault('invalid-cursor', 'cursor must be the nextCursor of an earlier answer.')
export const cursor = (position: RegExp) =>
  z
    .string()
    .regex(/^(?:[A-Za-z0-9]{4})*(?:[A-Za-z0-9]{2,3})?$/, { error: cursorRule, abort: true })
    .transform(text => atob(text))
    .refine(text => position.test(text), { error: cursorRule })
    .meta({ type: 'string', description: 'The `nextCursor` of the answer before.' })

export const listQuery = z.object({
  state: z.enum(['reserved', 'active'], fault('invalid-state', 'state must be "reserved" or "active".')).optional(),
  limit: limit.optional(),
  cursor: cursor(/^[a-z][a-z0-9-]{0,62}$/).optional(),
})

export const listResponse = z
  .object({ poolDomain: z.string(), allocations: z.array(allocation), nextCursor: z.string().optional() })
  .meta({ id: 'ListResponse' })

/**
 * One transition of an allocation, or what became of its records at the DNS provider, which changes no state. Never
 * changed, never removed by the service.
 */
export const historyEntry = z
  .object({
    poolDomain: z.string(),
    subdomain: z.string(),
    at: timestamp,
    event: z.enum([
      'reserved',
      'renewed',
      'committed',
      'released',
      'expired',
      'published',
      'withdrawn',
      'failing',
      'repaired',
    ]),
    from: z.enum(['none', 'reserved', 'active']),
    to: z.enum(['none', 'reserved', 'active']),
    actor: z.enum(['in-cluster', 'operator', 'sweeper', 'convergence', 'deployment']).meta({
      description:
        'Which door the request came through; `sweeper` for an expiry that it cleared, `convergence` for what became of records, `deployment` for what a deployment did to its name (requestId is its id).',
    }),
    address: z.string().optional().meta({ description: 'The network address of the caller.' }),
    createdBy: z.string(),
    requestId: z.string().optional(),
    detail: z.string().optional().meta({ description: 'Of `failing`: why. Of `repaired`: what.' }),
  })
  .meta({ id: 'HistoryEntry' })
export type HistoryEntry = z.infer<typeof historyEntry>

export const historyQuery = z.object({
  sub: subdomain.optional(),
  limit: limit.optional(),
  cursor: cursor(/^[1-9][0-9]{0,15}$/).optional(),
})

export const historyResponse = z
  .object({ poolDomain: z.string(), entries: z.array(historyEntry), nextCursor: z.string().optional() })
  .meta({ id: 'HistoryResponse', description: 'Newest first.' })

export const convergeQuery = z.object({
  dryRun: z
    .enum(['true', 'false'], fault('invalid-format', 'dryRun must be "true" or "false".'))
    .default('false')
    .meta({ description: 'With `true` nothing is written: what would be is shown.' }),
})

/** A record set (RFC 2181 section 5) that is to be written or removed at the DNS provider. */
const plannedChange = z
  .object({
    subdomain: z.string(),
    action: z.enum(['upsert', 'delete']),
    name: z.string().meta({ description: 'The owner name, absolute, without the trailing dot.' }),
    type: z.string(),
    ttl: z.number().int().optional().meta({ description: 'Seconds; of an `upsert`.' }),
    values: z.array(z.string()).optional().meta({ description: 'In presentation format; of an `upsert`.' }),
  })
  .meta({ id: 'PlannedChange' })
export type PlannedChange = z.infer<typeof plannedChange>

const plannedConflict = z
  .object({ subdomain: z.string(), detail: z.string() })
  .meta({ id: 'PlannedConflict', description: "A name left alone because somebody else's record is in its way." })

export const convergeResponse = z
  .object({
    poolDomain: z.string(),
    dryRun: z.boolean(),
    changes: z.array(plannedChange).meta({ description: 'What the zone lacked, by name; the first 1000.' }),
    changeCount: z.number().int(),
    conflicts: z.array(plannedConflict).meta({ description: 'By name; the first 1000.' }),
    conflictCount: z.number().int(),
  })
  .meta({ id: 'ConvergeResponse' })
export type ConvergeResponse = z.infer<typeof convergeResponse>

export const convergePendingResponse = convergeResponse.extend(warned).meta({ id: 'ConvergePendingResponse' })
export type ConvergePendingResponse = z.infer<typeof convergePendingResponse>

/** RFC 9110 visible characters (VCHAR); what the same key with another request is answered stands at the operations. */
export const idempotencyKey = z.string().regex(/^[\x21-\x7e]{1,255}$/, {
  error: fault('invalid-idempotency-key', 'Idempotency-Key must be 1 to 255 visible ASCII characters.'),
})

export type CommitPendingResponse = z.infer<typeof commitPendingResponse>
export type ReleasePendingResponse = z.infer<typeof releasePendingResponse>

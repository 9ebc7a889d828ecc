import * as z from 'zod'
import { problem, rule } from './allocation-problem.ts'
import { timestamp, wholeNumberText } from './common.ts'
import { absentIfNull, createdBy, fqdn, reservationToken, subdomain } from './fields.ts'
import { createTargetCheck, createTargetFields, targetFields } from './target.ts'

/**
 * The publication of the records of an active name. `pending`: not published yet, no attempt has failed. `published`: the
 * provider has them. `failing`: at least one attempt failed. The service retries indefinitely, and `detail` has the reason
 * of the last failure.
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
    ...targetFields,
    committedAt: timestamp,
    dns: dnsState,
  })
  .meta({ id: 'ActiveAllocation' })

/** A reserved or active name. It never contains the reservation token: only the response to reserve does. */
export const allocation = z
  .discriminatedUnion('state', [reservedAllocation, activeAllocation])
  .meta({ id: 'Allocation' })

export type ReservedAllocation = z.infer<typeof reservedAllocation>
export type ActiveAllocation = z.infer<typeof activeAllocation>
export type Allocation = z.infer<typeof allocation>

const bodyRule = rule('invalid-format', 'The body must be a JSON object with "subdomain".')

export const reserveRequest = z
  .object(
    {
      subdomain,
      createdBy: absentIfNull(createdBy.default('')),
      reservationToken: absentIfNull(
        z
          .string(rule('invalid-format', 'reservationToken must be a string: the token of the former reservation.'))
          .optional()
          .meta({
            description: 'The token of the released allocation: its client can take the name back during the cool-off.',
          }),
      ),
    },
    bodyRule,
  )
  .meta({ id: 'ReserveRequest' })

export const reserveResponse = reservedAllocation
  .extend({
    reservationToken: z.string().min(1).meta({
      description: 'Proves ownership of the reservation at commit, renew and release. Opaque: do not parse it.',
    }),
  })
  .meta({ id: 'ReserveResponse' })
export type ReserveResponse = z.infer<typeof reserveResponse>

/** Only a pool whose records are served to this machine alone accepts loopback addresses. */
export interface AddressOptions {
  readonly acceptsLoopback: boolean
}

/** The order of the fields is the order of validation. */
export const createCommitRequest = ({ acceptsLoopback }: AddressOptions) => {
  const fields = createTargetFields(acceptsLoopback)
  return z
    .object(
      {
        subdomain,
        reservationToken,
        ...fields,
        loadBalancerIP: absentIfNull(fields.loadBalancerIP),
        loadBalancerIPv6: absentIfNull(fields.loadBalancerIPv6),
        consoleLoadBalancerIP: absentIfNull(fields.consoleLoadBalancerIP),
        sovereignFQDN: fqdn.meta({ description: 'It must be `<subdomain>.<pool>`.' }),
      },
      bodyRule,
    )
    .check(createTargetCheck(true))
    .meta({
      id: 'CommitRequest',
      description: 'One form of target is required: addresses, `loadBalancerHostname`, or `nameservers`.',
    })
}

/** The order of the fields is the order of validation. `isTokenOptional`: the caller is an operator. */
export const createUpdateRequest = ({ acceptsLoopback }: AddressOptions, isTokenOptional: boolean) => {
  const fields = createTargetFields(acceptsLoopback)
  const removable = { description: 'Absent: it stays. `null` removes it.' }
  return z
    .object(
      {
        subdomain,
        reservationToken: absentIfNull(isTokenOptional ? reservationToken.optional() : reservationToken),
        ...fields,
        loadBalancerIP: fields.loadBalancerIP.nullable().meta(removable),
        loadBalancerIPv6: fields.loadBalancerIPv6.nullable().meta(removable),
        consoleLoadBalancerIP: fields.consoleLoadBalancerIP.nullable().meta(removable),
        sovereignFQDN: absentIfNull(fqdn.optional()).meta({
          description: 'If present, it must be `<subdomain>.<pool>`. It changes nothing.',
        }),
      },
      bodyRule,
    )
    .check(createTargetCheck(false))
    .meta({ id: 'UpdateRequest', description: 'Fields of another form than the current one replace the target.' })
}

const warned = { warning: z.literal('dns-pending'), detail: z.string() }

export const commitResponse = activeAllocation.meta({ id: 'CommitResponse' })
export const commitPendingResponse = activeAllocation.extend(warned).meta({ id: 'CommitPendingResponse' })

export const renewRequest = z.object({ subdomain, reservationToken }, bodyRule).meta({ id: 'RenewRequest' })

export const releaseRequest = z
  .object(
    {
      subdomain,
      reservationToken: absentIfNull(
        z
          .string(rule('token-mismatch', 'reservationToken does not match this allocation.'))
          .optional()
          .meta({ description: 'If present, it must match the allocation; otherwise nothing changes.' }),
      ),
    },
    bodyRule,
  )
  .meta({ id: 'ReleaseRequest' })

export const releaseResponse = z.object({ freed: allocation }).meta({ id: 'ReleaseResponse' })
export const releasePendingResponse = releaseResponse.extend(warned).meta({ id: 'ReleasePendingResponse' })

export const checkReasons = [
  'invalid-format',
  'unsupported-pool',
  'pool-draining',
  'reserved',
  'reserved-state',
  'active-state',
  'cooling-off',
] as const
export type CheckReason = (typeof checkReasons)[number]

export const availableAt = timestamp.meta({ description: 'With `cooling-off`: when any client can reserve the name.' })

/** The error body of a reservation that can succeed later. */
export const reserveProblem = problem.extend({ availableAt: availableAt.optional() }).meta({ id: 'ReserveProblem' })

export const checkResult = z
  .object({
    available: z.boolean(),
    reason: z.enum(checkReasons).optional().meta({ description: 'Why the name is not available; absent if it is.' }),
    detail: z.string().optional().meta({
      description: 'Why the name is not available. For an available name: why its bucket would make a deployment fail.',
    }),
    fqdn: z.string().optional().meta({ description: 'Present if the label and the pool are valid.' }),
    availableAt: availableAt.optional(),
  })
  .meta({ id: 'CheckResult' })
export type CheckResult = z.infer<typeof checkResult>

export const reservedList = z.object({ reserved: z.array(z.string()) }).meta({ id: 'ReservedList' })

/** The largest number of items that a request with a `limit` gets. */
export const MAX_LIMIT = 1_000

const limitRule = rule('invalid-limit', 'limit must be a whole number from 1 to 2147483647.')
/** A whole number from 1. One above `MAX_LIMIT` means the same as `MAX_LIMIT`. */
export const limit = wholeNumberText(1, 2_147_483_647, limitRule)
  .transform(n => Math.min(n, MAX_LIMIT))
  .meta({ description: 'Maximum number of items; never more than 1000, and all if it is absent.' })

/** Makes a position opaque to clients, which send it back as `cursor`. */
export const encodeCursor = (position: string): string => btoa(position).replaceAll('=', '')

const cursorRule = rule('invalid-cursor', 'cursor must be the nextCursor of an earlier response.')
export const cursor = (position: RegExp) =>
  z
    .string()
    .regex(/^(?:[A-Za-z0-9]{4})*[A-Za-z0-9]{2,4}$/, { ...cursorRule, abort: true })
    .transform(text => atob(text))
    .refine(text => position.test(text), cursorRule)
    .meta({ type: 'string', description: 'The `nextCursor` of the previous response.' })

export const listQuery = z.object({
  state: z.enum(['reserved', 'active'], rule('invalid-state', 'state must be "reserved" or "active".')).optional(),
  limit: limit.optional(),
  cursor: cursor(/^[a-z][a-z0-9-]{0,62}$/).optional(),
})

export const listResponse = z
  .object({ poolDomain: z.string(), allocations: z.array(allocation), nextCursor: z.string().optional() })
  .meta({ id: 'ListResponse' })

/** An RRset (RFC 2181 section 5). */
export const recordSet = z
  .object({
    name: z.string().meta({ description: 'The owner name, absolute, without the trailing dot.' }),
    type: z.string(),
    ttl: z.number().int().meta({ description: 'Seconds.' }),
    data: z.array(z.string()).meta({ description: 'In presentation format.' }),
  })
  .meta({ id: 'RecordSet' })

/** Of another writer; it was deleted because its name had been released. */
const deletedRecord = recordSet.meta({ id: 'DeletedRecord' })

/**
 * A transition of an allocation, or a result of its records at the DNS provider, which does not change the state. The
 * service never changes an entry, and deletes it only after a configured retention time.
 */
export const historyEntry = z
  .object({
    poolDomain: z.string(),
    subdomain: z.string(),
    at: timestamp,
    event: z
      .enum([
        'reserved',
        'renewed',
        'committed',
        'updated',
        'republished',
        'records-changed',
        'token-minted',
        'token-deleted',
        'released',
        'expired',
        'cool-off-lifted',
        'adopted',
        'orphan-removed',
        'published',
        'withdrawn',
        'failing',
        'repaired',
      ])
      .meta({
        description:
          '`renewed` occurs only in entries of earlier versions; see `renewalCount`. `adopted`: an operator made an allocation of records without one. `orphan-removed`: an operator had such records deleted; `withdrawn` follows. `records-changed`: a tenant set or deleted records; `detail` lists them. `token-minted`, `token-deleted`: of a token with which a tenant sets records.',
      }),
    from: z.enum(['none', 'reserved', 'active']),
    to: z.enum(['none', 'reserved', 'active']),
    actor: z.enum(['in-cluster', 'operator', 'sweeper', 'convergence', 'deployment', 'tenant']).meta({
      description:
        'Which listener received the request; `sweeper`: it removed what has expired; `convergence`: a result of the records; `deployment`: a deployment changed its name (requestId is its id); `tenant`: a token for records was used.',
    }),
    address: z.string().optional().meta({ description: 'The network address of the caller.' }),
    createdBy: z.string(),
    requestId: z.string().optional(),
    detail: z.string().optional().meta({
      description:
        'With `failing`: the reason. With `repaired`: what was repaired. With `updated`: the former and the new address.',
    }),
    deletedRecords: z.array(deletedRecord).optional().meta({
      description:
        'Record sets of other writers at or below the released name that were deleted. With `withdrawn`, `repaired`, or the `published` of the next holder.',
    }),
    renewalCount: z.number().int().min(1).optional().meta({
      description:
        'How often the reservation was renewed, if it was. With the entry that ended it: `committed`, `released` or `expired`.',
    }),
    renewedUntil: timestamp.optional().meta({
      description: 'With `renewalCount`: when the reservation expired, or would have expired, after its last renewal.',
    }),
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

export const dryRunQuery = z.object({
  dryRun: z
    .enum(['true', 'false'], rule('invalid-format', 'dryRun must be "true" or "false".'))
    .default('false')
    .meta({ description: 'With `true`, the changes are listed but not applied.' }),
})

/** An RRset (RFC 2181 section 5) to write or delete at the DNS provider. */
export const plannedChange = z
  .object({
    subdomain: z.string(),
    action: z.enum(['upsert', 'delete']),
    name: z.string().meta({ description: 'The owner name, absolute, without the trailing dot.' }),
    type: z.string(),
    ttl: z.number().int().optional().meta({ description: 'Seconds; only with `upsert`.' }),
    values: z.array(z.string()).optional().meta({ description: 'In presentation format; only with `upsert`.' }),
  })
  .meta({ id: 'PlannedChange' })
export type PlannedChange = z.infer<typeof plannedChange>

const plannedConflict = z.object({ subdomain: z.string(), detail: z.string() }).meta({
  id: 'PlannedConflict',
  description: 'A name that is not changed because an unmanaged record conflicts with it.',
})

const orphan = z
  .object({
    subdomain: z.string(),
    ...targetFields,
    records: z.array(recordSet).meta({ description: 'The records of this target, as the zone has them.' }),
    otherRecordCount: z.number().int().meta({ description: 'Other record sets at or below the name.' }),
  })
  .meta({
    id: 'Orphan',
    description: 'Records that match the template at a name that this service has no records for.',
  })
export type Orphan = z.infer<typeof orphan>

const orphans = z.array(orphan).meta({ description: 'By name; the first 1000.' })

/** Why nothing is written to a zone until an operator resumes it. */
export const stopCause = z.enum(['database-older', 'other-installation', 'imported']).meta({
  id: 'StopCause',
  description:
    '`database-older`: the database is older than the last write to the zone; `other-installation`: another database wrote it last; `imported`: the database was imported.',
})

export const convergeResponse = z
  .object({
    poolDomain: z.string(),
    dryRun: z.boolean(),
    changes: z.array(plannedChange).meta({
      description:
        'Differences between the zone and the desired records, by name: the first 1000, but no deletion is left out for another change.',
    }),
    changeCount: z.number().int(),
    conflicts: z.array(plannedConflict).meta({ description: 'By name; the first 1000.' }),
    conflictCount: z.number().int(),
    orphans,
    orphanCount: z.number().int(),
    stopped: stopCause
      .optional()
      .meta({ description: 'Nothing is written to the zone, for this reason, until an operator resumes it.' }),
  })
  .meta({ id: 'ConvergeResponse' })
export type ConvergeResponse = z.infer<typeof convergeResponse>

export const convergePendingResponse = convergeResponse.extend(warned).meta({ id: 'ConvergePendingResponse' })
export type ConvergePendingResponse = z.infer<typeof convergePendingResponse>

const resumeRule = rule('invalid-format', 'The body must be {"trust":"database"} or {"trust":"zone"}.')

export const resumeRequest = z
  .object(
    {
      trust: z.enum(['database', 'zone'], resumeRule).meta({
        description:
          '`database`: the zone gets the records of the database, and orphans are removed. `zone`: the database gets the names and addresses of the zone.',
      }),
    },
    resumeRule,
  )
  .meta({ id: 'ResumeRequest' })

const zoneDifference = z
  .object({
    subdomain: z.string(),
    databaseAddress: z
      .string()
      .optional()
      .meta({ description: 'The values of its records. Absent: the name is not active in the database.' }),
    zoneAddress: z.string().optional().meta({
      description: 'Absent: the zone does not have all records of the template with one address.',
    }),
    action: z.enum(['publish', 'withdraw', 'adopt', 'readdress', 'release']).meta({
      description:
        '`publish`, `withdraw`: the records change to those of the database. `adopt`: the name becomes active with the address of the zone; `readdress`: it gets that address; `release`: it becomes free. After these three, no client has a valid token of the name.',
    }),
  })
  .meta({ id: 'ZoneDifference' })
export type ZoneDifference = z.infer<typeof zoneDifference>

export const resumeResponse = z
  .object({
    poolDomain: z.string(),
    dryRun: z.boolean(),
    cause: stopCause,
    differences: z.array(zoneDifference).meta({
      description:
        'Names whose records in the zone are not those of the database, and what is done: the first 1000, but no name that loses its records or its holder is left out for another.',
    }),
    differenceCount: z.number().int(),
  })
  .meta({ id: 'ResumeResponse' })
export type ResumeResponse = z.infer<typeof resumeResponse>

export const resumePendingResponse = resumeResponse.extend(warned).meta({ id: 'ResumePendingResponse' })
export type ResumePendingResponse = z.infer<typeof resumePendingResponse>

export const formerRecordsQuery = z.object({ cursor: cursor(/^[1-9][0-9]{0,9}$/).optional() })

const formerRecord = z
  .object({
    provider: z.string().meta({ description: 'The `DNSPROVIDER_KIND` that had the record set.' }),
    name: z.string().meta({ description: 'The owner name, absolute, without the trailing dot.' }),
    type: z.string(),
    data: z.array(z.string()).optional().meta({ description: 'The values that were written last, if they are known.' }),
  })
  .meta({ id: 'FormerRecord' })

export const formerRecordsResponse = z
  .object({
    poolDomain: z.string(),
    records: z.array(formerRecord).meta({ description: 'By provider, name and type; at most 1000.' }),
    nextCursor: z.string().optional(),
  })
  .meta({ id: 'FormerRecordsResponse' })
export type FormerRecordsResponse = z.infer<typeof formerRecordsResponse>

const MAX_ORPHAN_NAMES = 1_000
const orphanNamesRule = rule(
  'invalid-format',
  `subdomains must be a list of 1 to ${MAX_ORPHAN_NAMES} subdomains; omit it to change every orphan.`,
)

export const orphansRequest = z
  .object(
    {
      // Not `absentIfNull`: a client that lost its list would change every orphan.
      subdomains: z
        .array(subdomain, orphanNamesRule)
        .min(1, orphanNamesRule)
        .max(MAX_ORPHAN_NAMES, orphanNamesRule)
        .optional()
        .meta({ description: 'Only these names. Absent: every orphan of the zone. `null` is invalid.' }),
    },
    rule('invalid-format', 'The body must be a JSON object, or absent.'),
  )
  .meta({ id: 'OrphansRequest' })

export const orphansResponse = z
  .object({
    poolDomain: z.string(),
    dryRun: z.boolean(),
    orphans,
    orphanCount: z.number().int(),
    changedCount: z.number().int().meta({
      description:
        'Orphans that were adopted or removed; 0 with `dryRun`. The others got a reservation or a holder at the same moment.',
    }),
  })
  .meta({ id: 'OrphansResponse' })
export type OrphansResponse = z.infer<typeof orphansResponse>

export const orphansPendingResponse = orphansResponse.extend(warned).meta({ id: 'OrphansPendingResponse' })
export type OrphansPendingResponse = z.infer<typeof orphansPendingResponse>

export const republishResponse = z
  .object({
    poolDomain: z.string(),
    dryRun: z.boolean(),
    changes: z.array(plannedChange).meta({
      description:
        'Differences between the desired records and those of the current template, by name; the first 1000.',
    }),
    changeCount: z.number().int(),
    nameCount: z.number().int().meta({ description: 'Active names with such a difference.' }),
  })
  .meta({ id: 'RepublishResponse' })
export type RepublishResponse = z.infer<typeof republishResponse>

export const republishPendingResponse = republishResponse.extend(warned).meta({ id: 'RepublishPendingResponse' })
export type RepublishPendingResponse = z.infer<typeof republishPendingResponse>

export type CommitPendingResponse = z.infer<typeof commitPendingResponse>
export type ReleasePendingResponse = z.infer<typeof releasePendingResponse>

import * as z from 'zod'
import { cursor, dnsState, limit, plannedChange, recordSet } from './allocation.ts'
import { rule } from './allocation-problem.ts'
import { maxCharacters, ONE_LINE, timestamp } from './common.ts'
import { canonicalName } from './fields.ts'
import { targetFields } from './target.ts'

/**
 * The state of a name that is not free. `cooling-off`: released, and only its former client can reserve it. `held`: released,
 * and a deployment still has infrastructure under it, or never given, because its records were in the zone before.
 */
export const nameStates = ['reserved', 'active', 'cooling-off', 'held'] as const

const nameState = z.enum(nameStates, rule('invalid-state', `state must be one of: ${nameStates.join(', ')}.`))

const availableAt = timestamp.meta({ description: 'With `cooling-off`: when any client can reserve the name.' })

const nameFields = {
  poolDomain: z.string(),
  subdomain: z.string(),
  state: z.enum(['free', ...nameStates]).meta({
    description: '`free`: the name has no holder. In a list, only if its records are not withdrawn yet.',
  }),
  reservedAt: timestamp.optional().meta({ description: 'Absent if the name is free.' }),
  createdBy: z.string().optional().meta({ description: 'Absent if the name is free.' }),
  expiresAt: timestamp.optional().meta({ description: 'With `reserved`.' }),
  availableAt: availableAt.optional(),
  ...targetFields,
  committedAt: timestamp.optional().meta({ description: 'Absent if the name was never active.' }),
  dns: dnsState.optional().meta({
    description: 'The publication of the records, or their withdrawal after a release. Absent if the name has none.',
  }),
}

/** A name of a list, with the status of its records. */
export const listedName = z.object(nameFields).meta({ id: 'ListedName' })
export type ListedName = z.infer<typeof listedName>

const textRule = (field: string) =>
  rule('invalid-format', `${field} must be text of at most 253 characters without control characters.`)

const text = (field: string) =>
  z
    .string(textRule(field))
    .regex(new RegExp(`^${ONE_LINE}$`), textRule(field))
    .check(maxCharacters(253, textRule(field)))

const addressRule = rule(
  'invalid-format',
  'address must be an IPv4 address or its first numbers, such as 203.0.113.10 or 203.0.113.',
)

/** The first one to four numbers of an IPv4 address; a dot may follow the first three. */
const ADDRESS_PREFIX =
  /^(?:25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])(?:\.(?:25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])){0,3}\.?$/

export const namesQuery = z.object({
  q: text('q').overwrite(canonicalName).optional().meta({
    description:
      'The beginning of the subdomain, or the subdomain with a dot and the beginning of the pool: `acm`, `acme.pool.te`.',
    example: 'acm',
  }),
  pool: text('pool').overwrite(canonicalName).optional().meta({ description: 'Only names of this pool.' }),
  address: z.string(addressRule).regex(ADDRESS_PREFIX, addressRule).optional().meta({
    description: 'Only active names with this address: an IPv4 address, or the whole numbers at its beginning.',
    example: '203.0.113',
  }),
  createdBy: text('createdBy').optional().meta({
    description: 'Only names whose creator begins with this text; case-sensitive.',
  }),
  state: nameState.optional(),
  dns: z
    .enum(['pending', 'published', 'failing'], rule('invalid-state', 'dns must be pending, published or failing.'))
    .optional()
    .meta({ description: 'Only names whose records have this status.' }),
  limit: limit.optional().meta({ description: 'Maximum number of names; 100 by default, and never more than 1000.' }),
  cursor: cursor(/^[\w%.!~*'():-]{1,4000}$/).optional(),
})
export type NamesQuery = z.infer<typeof namesQuery>

export const namesResponse = z.object({ names: z.array(listedName), nextCursor: z.string().optional() }).meta({
  id: 'NamesResponse',
  description:
    'A page. It can have fewer names than `limit`, even none, although others follow: then it has `nextCursor`.',
})
export type NamesResponse = z.infer<typeof namesResponse>

/** A name, whether or not it is free. */
export const nameDetails = z
  .object({
    ...nameFields,
    fqdn: z.string(),
    renewalCount: z.int().optional().meta({ description: 'How often the current reservation was renewed.' }),
    desired: z.array(recordSet).meta({ description: 'The records that the zone must have.' }),
    nextAttemptAt: timestamp.optional().meta({ description: 'With `failing`: when the records are tried again.' }),
    deployment: z
      .object({ id: z.uuid(), status: z.string() })
      .optional()
      .meta({ description: 'The latest deployment of this FQDN.' }),
  })
  .meta({ id: 'NameDetails' })
export type NameDetails = z.infer<typeof nameDetails>

/** The desired records of a name and those that the zone has. */
export const nameRecords = z
  .object({
    poolDomain: z.string(),
    subdomain: z.string(),
    desired: z.array(recordSet).meta({ description: 'The records that the zone must have.' }),
    found: z.array(recordSet).meta({ description: 'Every record set of the zone at or below the name.' }),
    changes: z.array(plannedChange).meta({ description: 'What the service would write now to make them equal.' }),
    conflict: z.string().optional().meta({
      description: 'Why the service writes nothing: a record that it does not manage is in the way.',
    }),
    readAt: timestamp.meta({ description: 'When the zone was read.' }),
  })
  .meta({ id: 'NameRecords' })
export type NameRecords = z.infer<typeof nameRecords>

export const nameActions = ['release', 'update', 'lift-cool-off'] as const
export type NameAction = (typeof nameActions)[number]

/** What an action would do to a name. Nothing is changed. */
export const namePlan = z
  .object({
    poolDomain: z.string(),
    subdomain: z.string(),
    action: z.enum(nameActions),
    from: z.enum(nameStates),
    to: z.enum(['free', ...nameStates]).meta({ description: 'The state of the name after the action.' }),
    coolOffSeconds: z.int().optional().meta({
      description: 'With `to: cooling-off`: how long only the former client can reserve the name.',
    }),
    changes: z.array(plannedChange).meta({ description: 'The record sets that are written or deleted.' }),
    deletedRecords: z.array(recordSet).meta({
      description: 'Of `changes`: record sets that this service did not write, and that are deleted with the name.',
    }),
    unavailable: z.string().optional().meta({
      description: 'Why the zone could not be read. Then `changes` comes from the database, without records of others.',
    }),
    conflict: z.string().optional().meta({
      description: 'Why the records are not written although the name changes: an unmanaged record is in the way.',
    }),
  })
  .meta({ id: 'NamePlan' })
export type NamePlan = z.infer<typeof namePlan>

import * as z from 'zod'
import { stopCause } from './allocation.ts'
import { rule } from './allocation-problem.ts'
import { maxCharacters, timestamp, wholeNumberText } from './common.ts'
import { generation, HOLDER, MAX_SLOT_BYTES, MAX_SLOTS, slot } from './lease.ts'

const tokenRule = rule('missing-token', 'token is required: an operator token or a sign-in code.')

export const sessionRequest = z
  .object({ token: z.string(tokenRule).min(1, tokenRule) }, tokenRule)
  .meta({ id: 'SessionRequest' })

/** A session of the console. Its id is in a cookie that scripts cannot read. */
export const operatorSession = z
  .object({
    createdAt: timestamp,
    expiresAt: timestamp.meta({ description: 'The session ends at this time, however it is used.' }),
    idleSeconds: z.int().meta({ description: 'The session ends after this time without a request.' }),
  })
  .meta({ id: 'Session' })
export type OperatorSession = z.infer<typeof operatorSession>

/** What a client needs to know of the configuration. It has no secret. */
export const serviceSettings = z
  .object({
    version: z.string(),
    managedDomains: z.array(z.string()),
    drainingDomains: z.array(z.string()),
    dnsProvider: z.string().meta({ description: 'The `DNSPROVIDER_KIND`.' }),
    writesZones: z.boolean().meta({ description: 'False with `PDM_DNS_WRITES=off`.' }),
    acceptsLoopback: z.boolean().meta({ description: 'Whether an address can be in 127/8.' }),
    recordNames: z.array(z.string()).meta({ description: 'The template: relative to a name, `@` is the name itself.' }),
    recordTtlSeconds: z.int(),
    reservationTtlSeconds: z.number(),
    coolOffSeconds: z.number(),
    bucketPrefix: z.string().meta({ description: 'A bucket is `<prefix>-<fqdn, with hyphens instead of dots>`.' }),
    objectStorage: z.object({
      provider: z.string(),
      domain: z.string(),
      regions: z.array(z.string()),
    }),
    tokenProviders: z.array(z.string()).meta({ description: 'Whose tokens can be validated.' }),
    deploymentProviders: z.array(z.string()).meta({ description: 'What `providers` of a deployment can name.' }),
    requiresDomainProof: z.boolean().meta({ description: 'True with `PDM_BYO_PROOF=required`.' }),
    hasWitness: z.boolean().meta({ description: 'Whether leases can be read: `PDM_WITNESS_URL` is set.' }),
  })
  .meta({ id: 'Settings' })
export type ServiceSettings = z.infer<typeof serviceSettings>

/** The health of a zone. */
export const zoneStatus = z
  .object({
    zone: z.string(),
    status: z.enum(['managed', 'draining', 'former']).meta({
      description:
        '`managed`: this replica has the pool in its configuration. `draining`: it has names or records, and is not configured. `former`: it was written before, or another replica manages it.',
    }),
    pendingNames: z.int().meta({ description: 'Names with a change that the provider does not have yet.' }),
    oldestPendingAt: timestamp.optional().meta({ description: 'Absent if nothing is pending.' }),
    failing: z.array(z.object({ cause: z.string(), names: z.int() })).meta({
      description: 'Of `pendingNames`: those whose last attempt failed, by cause.',
    }),
    stopped: stopCause.optional(),
    stoppedAt: timestamp.optional(),
    syncedAt: timestamp.optional().meta({ description: 'When the zone last had all desired records.' }),
    driftCheckedAt: timestamp.optional(),
    nextDriftCheckAt: timestamp.optional(),
  })
  .meta({ id: 'ZoneStatus' })
export type ZoneStatus = z.infer<typeof zoneStatus>

export const zonesResponse = z
  .object({
    provider: z.object({
      kind: z.string(),
      writesZones: z.boolean(),
      circuitOpen: z.boolean().meta({
        description: 'Whether this replica has suspended its calls to the provider after failures.',
      }),
    }),
    zones: z.array(zoneStatus),
  })
  .meta({ id: 'ZonesResponse', description: 'By name of the zone.' })
export type ZonesResponse = z.infer<typeof zonesResponse>

/** How long samples are kept, in minutes. */
export const SAMPLE_RETENTION_MINUTES = 7 * 24 * 60

const minutesRule = rule('invalid-limit', `minutes must be a whole number from 1 to ${SAMPLE_RETENTION_MINUTES}.`)
const pointsRule = rule('invalid-limit', 'points must be a whole number from 2 to 500.')

export const overviewQuery = z.object({
  minutes: wholeNumberText(1, SAMPLE_RETENTION_MINUTES, minutesRule)
    .default(60)
    .meta({ description: 'How far the series reach back.' }),
  points: wholeNumberText(2, 500, pointsRule)
    .default(120)
    .meta({ description: 'The number of points of each series.' }),
})
export type OverviewQuery = z.infer<typeof overviewQuery>

const series = z
  .array(z.number().nullable())
  .meta({ description: 'One value for each item of `times`; null: unknown.' })

/** Series for small plots. Each replica stores a sample every ten seconds, and the samples are kept for a week. */
export const overview = z
  .object({
    times: z.array(z.int()).meta({ description: 'Unix times in seconds: the ends of the intervals.' }),
    stepSeconds: z.number(),
    pools: z.array(
      z.object({ poolDomain: z.string(), reserved: series, active: series, coolingOff: series, held: series }),
    ),
    requests: z.object({
      perSecond: series.meta({ description: 'Of all replicas.' }),
      errorsPerSecond: series.meta({ description: 'Responses with 5xx.' }),
      meanMilliseconds: series.meta({ description: 'Until the response headers were ready.' }),
    }),
    dns: z.object({ pendingNames: series, failingNames: series }),
    deployments: z.object({ active: series.meta({ description: 'Runs in progress or queued.' }) }),
    replicas: z.array(
      z.object({
        id: z.uuid().meta({ description: 'Of a process: a restart makes a new one.' }),
        version: z.string(),
        node: z.string(),
        startedAt: timestamp,
        lastSeenAt: timestamp,
        isReady: z.boolean(),
        circuitOpen: z.boolean(),
        requestsPerSecond: series,
        eventLoopUtilization: series.meta({ description: 'From 0 to 1.' }),
      }),
    ),
  })
  .meta({ id: 'Overview' })
export type Overview = z.infer<typeof overview>

export const changeTopics = ['names', 'zones', 'deployments', 'samples'] as const
export type ChangeTopic = (typeof changeTopics)[number]

/** The data of a server-sent event: what has changed since the event before. */
export const changeEvent = z.object({ topics: z.array(z.enum(changeTopics)) }).meta({ id: 'ChangeEvent' })
export type ChangeEvent = z.infer<typeof changeEvent>

const slotRule = rule('invalid-format', 'slot must be text of 1 to 506 bytes in UTF-8.')
const witnessSlot = z
  .string(slotRule)
  .min(1, slotRule)
  .check(maxCharacters(MAX_SLOT_BYTES, slotRule))
  .refine(text => slot.safeParse(text).success, slotRule)
  .meta({ description: 'The name of a lease.', example: 'region-pair/primary' })

const slotsRule = rule('invalid-format', `slot must occur at most ${MAX_SLOTS} times, for different slots.`)
const leasePageRule = rule('invalid-limit', 'limit must be a whole number from 1 to 1000.')
const prefixRule = rule('invalid-format', 'prefix must be text of at most 506 characters.')
const leaseCursorRule = rule('invalid-cursor', 'cursor must be the nextCursor of an earlier response.')

/** The query of the list of leases: named slots, or a page of those with a prefix. */
export const witnessLeasesQuery = z.object({
  slot: z.array(witnessSlot).max(MAX_SLOTS, slotsRule).optional().meta({
    description: 'Can be repeated. The leases of these slots, exactly, with the number of waiting clients.',
  }),
  prefix: z
    .string()
    .check(maxCharacters(MAX_SLOT_BYTES, prefixRule))
    .optional()
    .meta({ description: 'Only slots that start with this text.' }),
  limit: wholeNumberText(1, 1_000, leasePageRule).optional().meta({ description: '1000 by default.' }),
  cursor: z
    .string()
    .regex(/^[!-~]{1,2048}$/, leaseCursorRule)
    .optional(),
})

export const witnessHistoryQuery = z.object({ slot: witnessSlot })

const releaseRule = rule('invalid-format', 'The body must be a JSON object with "slot", "holder" and "generation".')

export const witnessReleaseRequest = z
  .object({ slot: witnessSlot, holder: z.string(releaseRule).regex(HOLDER, releaseRule), generation }, releaseRule)
  .meta({ id: 'LeaseReleaseRequest', description: 'The lease as it was read: if it has changed since, it is kept.' })

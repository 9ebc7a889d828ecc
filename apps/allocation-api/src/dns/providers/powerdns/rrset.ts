import * as z from 'zod'
import { isAtOrBelow, type RecordChange, type RecordSet, toOwnerName } from '../../domain/rrset.ts'

export const rrsetList = z.array(
  z.object({
    name: z.string(),
    type: z.string(),
    ttl: z.number().default(0),
    records: z.array(z.object({ content: z.string(), disabled: z.boolean().default(false) })),
  }),
)
export type Rrset = z.infer<typeof rrsetList>[number]

export const zoneResponse = z.object({ kind: z.string().default('Native'), rrsets: rrsetList })

/**
 * Kinds whose records come from another source: another server, or a catalog's member list (RFC 9432). PowerDNS
 * accepts changes to them but loses them (observed with 4.7.3).
 */
const copiedKinds: ReadonlySet<string> = new Set(['Slave', 'Secondary', 'Consumer', 'Producer'])

export const isSecondary = (kind: string): boolean => copiedKinds.has(kind)

/** The server prints digests in lower case. */
const toValue = (type: string, content: string): string => (type === 'DS' ? content.toUpperCase() : content)

const ownerName = (absolute: string): string => absolute.replace(/\.$/, '').toLowerCase()

/** Splits RRsets into the served record sets and the disabled records. */
export const splitRecords = (rrsets: readonly Rrset[]) => {
  const served: RecordSet[] = []
  const unserved: RecordSet[] = []
  for (const { name: absolute, type, ttl, records } of rrsets) {
    const name = ownerName(absolute)
    const valuesWhere = (isDisabled: boolean): string[] =>
      [
        ...new Set(
          records.filter(record => record.disabled === isDisabled).map(record => toValue(type, record.content)),
        ),
      ].sort()
    const values = valuesWhere(false)
    const disabled = valuesWhere(true)
    // An RRset with neither has only a comment left.
    if (values.length > 0) served.push({ name, type, ttl, values })
    if (disabled.length > 0) unserved.push({ name, type, ttl, values: disabled })
  }
  return { served, unserved }
}

/**
 * Why a change is invalid in a way that the server does not report: it stores any number as TTL, treats a REPLACE
 * without records as a deletion, and confirms deletions in another zone. Undefined: the server decides.
 */
export const validatePowerdnsChange = (zone: string, change: RecordChange): string | undefined => {
  if (!isAtOrBelow(toOwnerName(change), zone)) return `the name is not in the zone ${zone}`
  if (change.kind === 'delete') return undefined
  const { ttl, values } = change.set
  // RFC 2181 section 8: 31 bits.
  if (!Number.isInteger(ttl) || ttl < 0 || ttl > 2 ** 31 - 1) return 'the TTL is not between 0 and 2147483647 seconds'
  return values.length === 0 ? 'there is no value' : undefined
}

/** The server rejects a second record of these types, even a disabled one. */
const singletons: ReadonlySet<string> = new Set(['CNAME', 'DNAME', 'SOA'])

/**
 * A change in the format of the API. REPLACE and DELETE affect every record of the RRset, so an operator's disabled
 * records are sent again unless the change drops them. A REPLACE without comments keeps them; a DELETE removes them.
 */
export const toRrset = (change: RecordChange, present: RecordSet | undefined) => {
  const { name, type } = change.kind === 'upsert' ? change.set : change
  const unserved = change.dropsUnserved ? undefined : present
  const values = change.kind === 'upsert' ? change.set.values : []
  const disabled = singletons.has(type) ? [] : (unserved?.values ?? []).filter(value => !values.includes(value))
  const records = [
    ...values.map(content => ({ content, disabled: false })),
    ...disabled.map(content => ({ content, disabled: true })),
  ]
  const rrset = { name: `${name}.`, type }
  if (records.length === 0) return { ...rrset, changetype: 'DELETE' }
  const ttl = change.kind === 'upsert' ? change.set.ttl : unserved?.ttl
  return { ...rrset, changetype: 'REPLACE', ttl, records }
}

/** Errors that name the owner. Anchored: record content comes later in them and may contain any name. */
const namingErrors = [
  /^Record (\S+)\/\S+ '/,
  /^(?:Duplicate )?RRset (\S+) IN /,
  /^Duplicate record in RRset (\S+) IN /,
  /^(?:Unable to parse DNS Name|Name) '([^']+)'/,
]

/** The owner name that caused an error; undefined: the error does not name it. */
export const parseOwner = (error: string): string | undefined => {
  const owner = namingErrors.map(pattern => pattern.exec(error)?.[1]).find(name => name !== undefined)
  return owner === undefined ? undefined : ownerName(owner)
}

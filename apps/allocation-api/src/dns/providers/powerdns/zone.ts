import { z } from 'zod'
import { type RecordSet, recordKey } from '../../domain/rrset.ts'

export const zoneResponse = z.object({
  kind: z.string().default('Native'),
  rrsets: z.array(
    z.object({
      name: z.string(),
      type: z.string(),
      ttl: z.number().default(0),
      records: z.array(z.object({ content: z.string(), disabled: z.boolean().default(false) })),
    }),
  ),
})
export type ZoneResponse = z.infer<typeof zoneResponse>

/** Records that stand in the zone and are not served (`disabled`). */
export interface UnservedRecords {
  /** Seconds. */
  readonly ttl: number
  readonly values: readonly string[]
}

/**
 * Kinds whose records are made from elsewhere: another server's, or the list of a catalog's members (RFC 9432).
 * PowerDNS takes changes to them all the same (seen with 4.7.3), and they come to nothing.
 */
const copiedKinds: ReadonlySet<string> = new Set(['Slave', 'Secondary', 'Consumer', 'Producer'])

export const isSecondary = ({ kind }: ZoneResponse): boolean => copiedKinds.has(kind)

export const ownerName = (absolute: string): string => absolute.replace(/\.$/, '').toLowerCase()

/** What is served of an answered zone, and apart from it what is disabled, by record key. */
export const splitRecords = ({ rrsets }: Pick<ZoneResponse, 'rrsets'>) => {
  const served: RecordSet[] = []
  const unserved = new Map<string, UnservedRecords>()
  for (const { name: absolute, type, ttl, records } of rrsets) {
    const name = ownerName(absolute)
    const valuesWhere = (isDisabled: boolean): string[] =>
      [...new Set(records.filter(record => record.disabled === isDisabled).map(record => record.content))].sort()
    const values = valuesWhere(false)
    const disabled = valuesWhere(true)
    // Neither: a comment whose records are gone.
    if (values.length > 0) served.push({ name, type, ttl, values })
    if (disabled.length > 0) unserved.set(recordKey({ name, type }), { ttl, values: disabled })
  }
  return { served, unserved }
}

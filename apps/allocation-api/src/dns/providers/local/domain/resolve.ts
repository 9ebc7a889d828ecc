import type { RecordSet } from '../../../domain/rrset.ts'
import { isAtOrBelow } from '../../../domain/rrset.ts'

/**
 * The part of a zone that one question needs: all record sets at the queried name, at each of its ancestors and at the
 * wildcard below each of these; and at least one record set below each of these names that has any. Further record sets
 * do no harm. `serial` is the version of the zone (RFC 1035 section 3.3.13).
 */
export interface ZoneView {
  readonly serial: number
  readonly records: readonly RecordSet[]
}

export interface Question {
  /** Without the trailing dot, in any case. */
  readonly name: string
  readonly type: string
}

export interface Resolution {
  readonly rcode: 'NOERROR' | 'NXDOMAIN' | 'REFUSED'
  readonly answers: readonly RecordSet[]
  readonly authority: readonly RecordSet[]
  /** Other servers answer for the name. */
  readonly isReferral?: true
  /** The target of a CNAME, in this zone: resolve it next and append the answers (RFC 1034 section 4.3.2, step 3a). */
  readonly alias?: string
}

/**
 * How long a resolver may cache that a name does not exist (RFC 2308 section 5). Short, because a developer may query a
 * name before reserving it.
 */
const NEGATIVE_TTL_SECONDS = 5

/** As in RFC 6303 section 3: a local zone names a server and a mailbox that cannot be reached from elsewhere. */
const apexRecords = (zone: string, serial: number): RecordSet[] => [
  { name: zone, type: 'NS', ttl: 3600, values: ['localhost.'] },
  {
    name: zone,
    type: 'SOA',
    ttl: NEGATIVE_TTL_SECONDS,
    values: [`localhost. nobody.invalid. ${serial} 3600 1200 604800 ${NEGATIVE_TTL_SECONDS}`],
  },
]

const toParent = (name: string): string => name.slice(name.indexOf('.') + 1)

const toTarget = (alias: RecordSet): string => (alias.values[0] ?? '').toLowerCase().replace(/\.$/, '')

/**
 * The response of the zone's authoritative server: RFC 1034 section 4.3.2 with the wildcards of RFC 4592 and the negative answers of
 * RFC 2308. At and below NS records, it refers to other servers (step 3b).
 */
export const resolve = (zone: string, view: ZoneView, question: Question): Resolution => {
  const name = question.name.toLowerCase()
  if (!isAtOrBelow(name, zone)) return { rcode: 'REFUSED', answers: [], authority: [] }

  const apex = apexRecords(zone, view.serial)
  const soa = apex.filter(set => set.type === 'SOA')
  const records = [...apex, ...view.records.filter(set => !(set.name === zone && /^(NS|SOA)$/.test(set.type)))]
  // A name without records exists if there are records below it: an empty non-terminal (RFC 4592 section 2.2.2).
  const exists = (node: string) => records.some(set => isAtOrBelow(set.name, node))

  // RFC 4035 section 3.1.4.1: the parent answers for DS.
  const isCut = (set: RecordSet) =>
    set.type === 'NS' &&
    set.name !== zone &&
    isAtOrBelow(name, set.name) &&
    !(question.type === 'DS' && set.name === name)
  const [cut] = records.filter(isCut).sort((a, b) => a.name.length - b.name.length)
  if (cut) return { rcode: 'NOERROR', answers: [], authority: [cut], isReferral: true }

  let source = name
  if (!exists(name)) {
    let encloser = toParent(name)
    while (!exists(encloser)) encloser = toParent(encloser)
    source = `*.${encloser}`
    if (!exists(source)) return { rcode: 'NXDOMAIN', answers: [], authority: soa }
  }

  const atSource = records.filter(set => set.name === source).map(set => ({ ...set, name }))
  // RFC 8482 section 4.1: the response to ANY is one complete record set.
  const match = question.type === 'ANY' ? atSource[0] : atSource.find(set => set.type === question.type)
  if (match) return { rcode: 'NOERROR', answers: [match], authority: [] }

  const alias = atSource.find(set => set.type === 'CNAME')
  if (!alias) return { rcode: 'NOERROR', answers: [], authority: soa }
  const target = toTarget(alias)
  return {
    rcode: 'NOERROR',
    answers: [alias],
    authority: [],
    ...(isAtOrBelow(target, zone) ? { alias: target } : {}),
  }
}

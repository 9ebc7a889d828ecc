import type { RecordSet } from '../../../domain/rrset.ts'
import { isAtOrBelow } from '../../../domain/rrset.ts'

/**
 * As much of a zone as one question needs: all record sets at the name asked for, at each of its ancestors and at the
 * wildcard below each of these; and, where something lies below one of them, at least one record set from there. More
 * does no harm. `serial` is the version of the zone (RFC 1035 section 3.3.13).
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
  /** The name in this zone that a CNAME leads to: ask again for it, and append (RFC 1034 section 4.3.2, step 3a). */
  readonly alias?: string
}

/**
 * Seconds. How long a resolver may remember that a name does not exist (RFC 2308 section 5); short, because a developer
 * who looks too early, then reserves the name, should see it soon.
 */
const negativeTtl = 5

/** RFC 6303 section 3 style: a zone that lives on this machine names no server and no mailbox that could be reached. */
const apexRecords = (zone: string, serial: number): RecordSet[] => [
  { name: zone, type: 'NS', ttl: 3600, values: ['localhost.'] },
  {
    name: zone,
    type: 'SOA',
    ttl: negativeTtl,
    values: [`localhost. nobody.invalid. ${serial} 3600 1200 604800 ${negativeTtl}`],
  },
]

const toParent = (name: string): string => name.slice(name.indexOf('.') + 1)

const toTarget = (alias: RecordSet): string => (alias.values[0] ?? '').toLowerCase().replace(/\.$/, '')

/**
 * The answer of the zone's authority: RFC 1034 section 4.3.2 with the wildcards of RFC 4592 and the negative answers of
 * RFC 2308. There are no delegations: nothing below the apex may be of type NS.
 */
export const resolve = (zone: string, view: ZoneView, question: Question): Resolution => {
  const name = question.name.toLowerCase()
  if (!isAtOrBelow(name, zone)) return { rcode: 'REFUSED', answers: [], authority: [] }

  const apex = apexRecords(zone, view.serial)
  const soa = apex.filter(set => set.type === 'SOA')
  const records = [...apex, ...view.records.filter(set => !(set.name === zone && /^(NS|SOA)$/.test(set.type)))]
  // A name without records exists when something lies below it: an empty non-terminal (RFC 4592 section 2.2.2).
  const exists = (node: string) => records.some(set => isAtOrBelow(set.name, node))

  let source = name
  if (!exists(name)) {
    let encloser = toParent(name)
    while (!exists(encloser)) encloser = toParent(encloser)
    source = `*.${encloser}`
    if (!exists(source)) return { rcode: 'NXDOMAIN', answers: [], authority: soa }
  }

  const here = records.filter(set => set.name === source).map(set => ({ ...set, name }))
  // RFC 8482 section 4.1: ANY is answered with one of the record sets, the whole of it.
  const wanted = question.type === 'ANY' ? here[0] : here.find(set => set.type === question.type)
  if (wanted) return { rcode: 'NOERROR', answers: [wanted], authority: [] }

  const alias = here.find(set => set.type === 'CNAME')
  if (!alias) return { rcode: 'NOERROR', answers: [], authority: soa }
  const target = toTarget(alias)
  return {
    rcode: 'NOERROR',
    answers: [alias],
    authority: [],
    ...(isAtOrBelow(target, zone) ? { alias: target } : {}),
  }
}

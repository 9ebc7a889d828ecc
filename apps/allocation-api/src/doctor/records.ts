import { Resolver } from 'node:dns/promises'
import { RECORDS_PATH } from '@pool/contract'
import { bad, type Finding, good, notChecked } from './domain/report.ts'

/** What the checks ask the resolver of this machine. */
export type ZoneResolver = Pick<Resolver, 'resolveNs' | 'resolveSoa'>

export const createZoneResolver = (timeoutMs: number): ZoneResolver =>
  new Resolver({ timeout: timeoutMs / 2, tries: 2 })

/** A resolver that was asked too early keeps the empty answer so long. Clients of ACME wait for little more. */
const MAX_SOA_MINIMUM_S = 60
/** The name exists without such a record, or it does not exist. Every other error is one of the resolver. */
const NO_RECORD = ['ENODATA', 'ENOTFOUND']

/** Whether clients of ACME find the servers of a zone, and a new value at once. */
export const checkRecordsZone = async (zone: string, resolver: ZoneResolver): Promise<Finding> => {
  const check = `records in ${zone}`
  try {
    const [servers, { minttl }] = await Promise.all([resolver.resolveNs(zone), resolver.resolveSoa(zone)])
    if (minttl > MAX_SOA_MINIMUM_S) {
      const text = `the minimum in the SOA of ${zone} is ${minttl} s, and for that time a resolver keeps that a challenge does not exist`
      return bad(check, text, `set the minimum, the last number of the SOA, to ${MAX_SOA_MINIMUM_S} or less`)
    }
    const minimum = `the minimum in its SOA is ${minttl} s`
    return good(check, `the zone has ${servers.length} name servers, which tenants must be able to ask, and ${minimum}`)
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : ''
    if (!NO_RECORD.includes(code)) return notChecked(check, `the resolver of this machine did not answer: ${code}`)
    const advice = 'let the zone answer SOA and NS at its apex, and delegate it: clients of ACME look for its servers'
    return bad(check, `the DNS has no SOA or no NS of ${zone}`, advice)
  }
}

/** Whether the address for tenants leads to this service, without a redirect: tools lose the token at one. */
export const checkRecordsUrl = async (url: string, timeoutMs: number): Promise<Finding> => {
  const check = 'PDM_RECORDS_URL'
  const health = `${url}${RECORDS_PATH}/acme-dns/health`
  const advice = `route ${RECORDS_PATH} of this address to the service, with a certificate of a public authority`
  try {
    const response = await fetch(health, { redirect: 'manual', signal: AbortSignal.timeout(timeoutMs) })
    const text = response.status === 200 ? await response.text() : ''
    if (text.includes('"ok"')) return good(check, 'it leads to a service, as seen from this machine')
    return bad(check, `${health} responds with ${response.status}, and not as this service does`, advice)
  } catch (error) {
    const { cause = error } = error instanceof Error ? error : {}
    const reason = cause instanceof Error ? cause.message : String(cause)
    return bad(check, `${health} cannot be reached from this machine: ${reason}`, advice)
  }
}

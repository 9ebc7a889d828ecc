import { canonicalName, deploymentDomain, deploymentFaultsOf, type FieldFault } from '@pool/contract'
import type { PoolName } from '../../allocation/domain/types.ts'
import { toFqdn, validateName, validatePool } from '../../naming/naming.ts'

export type Domain =
  | { readonly kind: 'domain'; readonly fqdn: string; readonly name: PoolName | null }
  | { readonly kind: 'faulty'; readonly faults: readonly FieldFault[] }

const faulty = (...faults: readonly FieldFault[]): Domain => ({ kind: 'faulty', faults })

/** The managed pool that a name is, or is in, if any. */
const poolAbove = (fqdn: string, managedDomains: readonly string[]): string | undefined => {
  const labels = fqdn.split('.')
  return labels.map((_, at) => labels.slice(at).join('.')).find(suffix => managedDomains.includes(suffix))
}

/** What is wrong with the pool although other fields of it kept the section from being read. */
const poolFaults = (pool: unknown, mode: unknown, managedDomains: readonly string[]): readonly FieldFault[] => {
  if (mode !== 'pool' || typeof pool !== 'string' || canonicalName(pool) === '') return []
  const refusal = validatePool(canonicalName(pool), managedDomains)
  return refusal ? [{ field: 'sovereignPoolDomain', detail: refusal.detail }] : []
}

/**
 * Under which name a deployment is to be reached. A domain of one's own cannot be a pool's or in it: the name would be
 * had without being taken from the table that says who has it.
 */
export const domainOf = (body: Readonly<Record<string, unknown>>, managedDomains: readonly string[]): Domain => {
  const read = deploymentDomain.safeParse(body)
  if (!read.success) {
    const more = poolFaults(body.sovereignPoolDomain, body.sovereignDomainMode, managedDomains)
    return faulty(...deploymentFaultsOf(read.error), ...more)
  }
  if (read.data.sovereignDomainMode === 'pool') {
    const { sovereignPoolDomain: poolDomain, sovereignSubdomain: subdomain } = read.data
    const refusal = validateName(poolDomain, subdomain, managedDomains)
    if (!refusal) return { kind: 'domain', fqdn: toFqdn(poolDomain, subdomain), name: { poolDomain, subdomain } }
    const field = refusal.kind === 'reserved' ? 'sovereignSubdomain' : 'sovereignPoolDomain'
    return faulty({ field, detail: refusal.detail })
  }
  const { sovereignFQDN: fqdn } = read.data
  const pool = poolAbove(fqdn, managedDomains)
  if (pool === undefined) return { kind: 'domain', fqdn, name: null }
  const detail = `sovereignFQDN is in the pool ${pool}, whose names are taken with sovereignDomainMode "pool".`
  return faulty({ field: 'sovereignFQDN', detail })
}

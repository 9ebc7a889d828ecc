import { isReservedLabel } from './reserved-labels.ts'

export const fqdnOf = (poolDomain: string, subdomain: string): string => `${subdomain}.${poolDomain}`

/**
 * Whether the name would stand at or above a managed pool domain: granting `eu` in `pool.example` while
 * `eu.pool.example` is a pool would give one tenant the whole of that pool's names.
 */
const coversPool = (fqdn: string, managedDomains: readonly string[]): boolean =>
  managedDomains.some(domain => domain === fqdn || domain.endsWith(`.${fqdn}`))

export type NameRefusal =
  | { readonly kind: 'unsupported-pool'; readonly detail: string }
  | { readonly kind: 'reserved'; readonly detail: string }

export const refusePool = (poolDomain: string, managedDomains: readonly string[]): NameRefusal | null =>
  managedDomains.includes(poolDomain)
    ? null
    : {
        kind: 'unsupported-pool',
        detail: `This service does not manage that pool; it manages ${managedDomains.join(', ')}.`,
      }

/** Why a well-formed label cannot be granted to anybody, if so. */
export const refuseName = (
  poolDomain: string,
  subdomain: string,
  managedDomains: readonly string[],
): NameRefusal | null => {
  const refusal = refusePool(poolDomain, managedDomains)
  if (refusal) return refusal
  return isReservedLabel(subdomain) || coversPool(fqdnOf(poolDomain, subdomain), managedDomains)
    ? { kind: 'reserved', detail: `"${subdomain}" is reserved and cannot be given to a tenant; choose another name.` }
    : null
}

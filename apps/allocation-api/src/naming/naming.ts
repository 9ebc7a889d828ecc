import { isReservedLabel } from './reserved-labels.ts'

export const toFqdn = (poolDomain: string, subdomain: string): string => `${subdomain}.${poolDomain}`

/**
 * Whether the name would stand at or above a managed pool domain: granting `eu` in `pool.example` while
 * `eu.pool.example` is a pool would give one tenant the whole of that pool's names.
 */
const coversPool = (fqdn: string, managedDomains: readonly string[]): boolean =>
  managedDomains.some(domain => domain === fqdn || domain.endsWith(`.${fqdn}`))

export type NameRejection =
  | { readonly kind: 'unsupported-pool'; readonly detail: string }
  | { readonly kind: 'reserved'; readonly detail: string }

export const validatePool = (poolDomain: string, managedDomains: readonly string[]): NameRejection | null =>
  managedDomains.includes(poolDomain)
    ? null
    : {
        kind: 'unsupported-pool',
        detail: `This service does not manage that pool; it manages ${managedDomains.join(', ')}.`,
      }

/** Why a well-formed label cannot be granted to anybody, if so. */
export const validateName = (
  poolDomain: string,
  subdomain: string,
  managedDomains: readonly string[],
): NameRejection | null => {
  const refusal = validatePool(poolDomain, managedDomains)
  if (refusal) return refusal
  return isReservedLabel(subdomain) || coversPool(toFqdn(poolDomain, subdomain), managedDomains)
    ? { kind: 'reserved', detail: `"${subdomain}" is reserved and cannot be given to a tenant; choose another name.` }
    : null
}

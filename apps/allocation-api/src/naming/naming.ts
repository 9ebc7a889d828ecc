import { reservedLabels } from './reserved-labels.ts'

export type NameRejection =
  | { readonly kind: 'unsupported-pool'; readonly detail: string }
  | { readonly kind: 'reserved'; readonly detail: string }

const reserved = new Set(reservedLabels)

export const toFqdn = (poolDomain: string, subdomain: string): string => `${subdomain}.${poolDomain}`

/** Case-insensitive. */
export const isReservedLabel = (label: string): boolean => reserved.has(label.toLowerCase())

/**
 * Whether the name is at or above a managed pool domain. The tenant of `eu` in `pool.example` would control every name of
 * the pool `eu.pool.example`.
 */
const coversPool = (fqdn: string, managedDomains: readonly string[]): boolean =>
  managedDomains.some(domain => domain === fqdn || domain.endsWith(`.${fqdn}`))

export const validatePool = (poolDomain: string, managedDomains: readonly string[]): NameRejection | null =>
  managedDomains.includes(poolDomain)
    ? null
    : {
        kind: 'unsupported-pool',
        detail: `This service does not manage that pool. Use one of: ${managedDomains.join(', ')}.`,
      }

/** The reason why no tenant can have this well-formed label, or null. */
export const validateName = (
  poolDomain: string,
  subdomain: string,
  managedDomains: readonly string[],
): NameRejection | null => {
  const rejection = validatePool(poolDomain, managedDomains)
  if (rejection) return rejection
  return isReservedLabel(subdomain) || coversPool(toFqdn(poolDomain, subdomain), managedDomains)
    ? { kind: 'reserved', detail: `"${subdomain}" is reserved; choose another name.` }
    : null
}

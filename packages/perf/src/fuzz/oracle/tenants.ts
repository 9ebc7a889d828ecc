import type { Exchange } from '../connection.ts'
import { findUuids } from './secrets.ts'

/** Part of all that a client names after itself. */
export const toTenantMark = (tenant: number): string => `Tn${tenant}x`

const MARK = /Tn(\d+)x/g
/** Mutated paths and raw bytes can reach any operation. */
const UNCLEAR_ROWS = ['paths', 'methods', 'raw']
const OWN_ID = /^\/api\/v1\/deployments\/([0-9a-f-]{36})(?:[/?]|$)/

const parseObject = (text: string): Readonly<Record<string, unknown>> => {
  try {
    return Object(JSON.parse(text))
  } catch {
    return {}
  }
}

/** The FQDN that a creation asks for; null: unclear. */
const toFqdn = ({ body }: Exchange['request']): string | null => {
  const { sovereignFQDN, sovereignSubdomain, sovereignPoolDomain } = parseObject(body?.toString('utf8') ?? '')
  if (typeof sovereignFQDN === 'string') return sovereignFQDN
  return typeof sovereignSubdomain === 'string' ? `${sovereignSubdomain}.${sovereignPoolDomain}` : null
}

/**
 * Finds what belongs to one client in responses about the resources of another. Each client is a tenant. Its resources are the
 * deployments that it created and the names that it has a token of.
 */
export const createTenantLedger = () => {
  /** The last tenant of each FQDN. */
  const tenantsByFqdn = new Map<string, number>()
  let successions = 0
  /** The tenants of deployments and tokens. */
  const owners = new Map<string, number>()

  const isAboutOwn = ({ request, outcome }: Exchange): boolean => {
    const { tenant, target, method, body, row } = request
    if (tenant === undefined || outcome.kind !== 'response' || UNCLEAR_ROWS.includes(row)) return false
    if (method === 'POST' && /^\/api\/v1\/deployments(?:\?|$)/.test(target)) return true
    const [, id] = OWN_ID.exec(target) ?? []
    if (id !== undefined) return owners.get(id) === tenant
    const { reservationToken } = parseObject(body?.toString('utf8') ?? '')
    const isAccepted = outcome.response.status >= 200 && outcome.response.status < 300
    return isAccepted && typeof reservationToken === 'string' && owners.get(reservationToken) === tenant
  }

  return {
    /** How many deployments followed one of another client under their FQDN. */
    successions: () => successions,
    /** Records what the response grants. Returns the violations. */
    check(exchange: Exchange): string[] {
      const { request, outcome } = exchange
      const { tenant } = request
      if (outcome.kind !== 'response' || tenant === undefined) return []
      const { status, text } = outcome.response
      if (status === 201) {
        const { id, deploymentToken, reservationToken } = parseObject(text)
        for (const value of [deploymentToken === undefined ? undefined : id, deploymentToken, reservationToken])
          if (typeof value === 'string') owners.set(value, tenant)
        const fqdn = deploymentToken === undefined ? null : toFqdn(request)
        if (fqdn !== null) {
          if ((tenantsByFqdn.get(fqdn) ?? tenant) !== tenant) successions += 1
          tenantsByFqdn.set(fqdn, tenant)
        }
      }
      if (!isAboutOwn(exchange)) return []
      const marks = [...text.matchAll(MARK)].filter(([, number]) => Number(number) !== tenant)
      const ids = findUuids(text).filter(uuid => (owners.get(uuid) ?? tenant) !== tenant)
      return [
        ...(marks.length > 0 ? ['another tenant: its name or its resources'] : []),
        ...(ids.length > 0 ? ['another tenant: its deployment or its token'] : []),
      ]
    },
  }
}

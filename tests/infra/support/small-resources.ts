import { parseImportId, type ResourceBehavior } from '@pool/test-kit/terraform/resource.ts'
import { type Attributes, Unknown } from '@pool/test-kit/terraform/schema.ts'
import type { Account } from './account.ts'

export const namespaceResource = (account: Account): ResourceBehavior => ({
  write(planned, prior) {
    const id = prior ? String(prior.id) : account.newId('namespace')
    account.namespaces.set(id, String(planned.title))
    return { ...planned, id, supports_url_encoding: true }
  },
  read(state) {
    const title = account.namespaces.get(String(state.id))
    return title === undefined ? null : { ...state, title, supports_url_encoding: true }
  },
  remove: ({ id }) => void account.namespaces.delete(String(id)),
  import: id => parseImportId(id, 'account_id', 'id'),
})

export const subdomainResource = (account: Account): ResourceBehavior => ({
  write(planned) {
    const name = String(planned.script_name)
    account.script(name)
    account.subdomains.set(name, { enabled: planned.enabled === true, previews: planned.previews_enabled === true })
    return { ...planned, id: name, previews_enabled: planned.previews_enabled === true }
  },
  read(state) {
    const setting = account.subdomains.get(String(state.script_name))
    return setting
      ? { ...state, id: state.script_name ?? null, enabled: setting.enabled, previews_enabled: setting.previews }
      : null
  },
  remove: ({ script_name }) => void account.subdomains.set(String(script_name), { enabled: false, previews: false }),
  import: id => parseImportId(id, 'account_id', 'script_name'),
})

/** What the API adds to a custom domain. */
export const readComputed = (id: string, hostname: string): Attributes => ({
  id,
  zone_name: hostname.split('.').slice(-2).join('.'),
  environment: 'production',
  cert_id: `certificate-of-${id}`,
})

export const domainResource = (account: Account): ResourceBehavior => ({
  write(planned) {
    const hostname = String(planned.hostname)
    const id = account.putDomain({ hostname, service: String(planned.service), zoneId: String(planned.zone_id) })
    const computed = readComputed(id, hostname)
    const known = Object.entries(planned).map(([name, value]) => [
      name,
      value instanceof Unknown ? (computed[name] ?? null) : value,
    ])
    return Object.fromEntries(known)
  },
  read(state) {
    const domain = account.domains.get(String(state.id))
    if (!domain) return null
    const { hostname, service, zoneId } = domain
    return { ...state, ...readComputed(String(state.id), hostname), hostname, service, zone_id: zoneId }
  },
  remove: ({ id }) => void account.domains.delete(String(id)),
  import: id => parseImportId(id, 'account_id', 'id'),
})

import type { Account } from './account.ts'
import { parseImportId, type ResourceBehavior } from './resource.ts'

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
    return planned
  },
  read(state) {
    const setting = account.subdomains.get(String(state.script_name))
    return setting ? { ...state, enabled: setting.enabled, previews_enabled: setting.previews } : null
  },
  // The provider has no API call to delete this setting, so it stays unchanged.
  remove: () => undefined,
  import: id => parseImportId(id, 'account_id', 'script_name'),
})

export const domainResource = (account: Account): ResourceBehavior => ({
  write(planned, prior) {
    const service = String(planned.service)
    account.script(service)
    const id = prior ? String(prior.id) : account.newId('domain')
    const hostname = String(planned.hostname)
    account.domains.set(id, { hostname, service, zoneId: String(planned.zone_id) })
    return { ...planned, id, zone_name: hostname.split('.').slice(-2).join('.'), environment: 'production' }
  },
  read(state) {
    const domain = account.domains.get(String(state.id))
    if (!domain) return null
    const { hostname, service, zoneId } = domain
    const zone_name = hostname.split('.').slice(-2).join('.')
    return { ...state, hostname, service, zone_id: zoneId, zone_name, environment: 'production' }
  },
  remove: ({ id }) => void account.domains.delete(String(id)),
  import: id => parseImportId(id, 'account_id', 'id'),
})

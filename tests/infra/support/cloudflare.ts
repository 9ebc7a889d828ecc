import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import {
  type DataSource,
  type Provider,
  parseImportId,
  type ResourceBehavior,
} from '@pool/test-kit/terraform/resource.ts'
import { type Attributes, isObject, isText, type Schema, Unknown, type Value } from '@pool/test-kit/terraform/schema.ts'
import type { Account, Upload } from './account.ts'
import { cloudflareProvider, customDomain, namespace, script, scriptSubdomain, scripts } from './cloudflare-schema.ts'

const namespaceResource = (account: Account): ResourceBehavior => ({
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

const subdomainResource = (account: Account): ResourceBehavior => ({
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

const domainResource = (account: Account): ResourceBehavior => ({
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

const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex')

const getBindings = (state: Attributes): Attributes[] =>
  Array.isArray(state.bindings) ? state.bindings.filter(isObject) : []

export function parseMigration(migrations: Value | undefined): Upload['migration'] {
  if (!isObject(migrations)) return null
  const { old_tag, new_tag, new_sqlite_classes } = migrations
  const newClasses = Array.isArray(new_sqlite_classes) ? new_sqlite_classes.filter(isText) : []
  return { oldTag: isText(old_tag) ? old_tag : '', newTag: isText(new_tag) ? new_tag : '', newClasses }
}

/** What the API reports about a script, beside its settings. */
export function readMetadata(account: Account, name: string): Attributes {
  const { content, classes, migrationTag, uploads } = account.script(name)
  return {
    created_on: '2026-11-21T09:00:00Z',
    etag: sha256(content),
    handlers: ['fetch'],
    has_assets: false,
    has_modules: true,
    last_deployed_from: 'terraform',
    migration_tag: migrationTag || null,
    modified_on: `2026-11-21T09:00:${String(uploads).padStart(2, '0')}Z`,
    named_handlers: [...classes].map(name => ({ name, handlers: ['class'] })),
    usage_model: 'standard',
  }
}

/** Upload, refresh, deletion and import of a script, after the source of the real provider (5.19.1). */
function scriptResource(account: Account, directory: string): ResourceBehavior {
  const readContent = ({ content, content_file }: Attributes): string =>
    isText(content_file) ? readFileSync(resolve(directory, content_file), 'utf8') : String(content)

  return {
    async write(planned, _prior, { migrations = null }) {
      const name = String(planned.script_name)
      const withObjectIds = (toId: (className: Value | undefined) => Value) =>
        getBindings(planned).map(binding => ({
          ...binding,
          namespace_id:
            binding.namespace_id instanceof Unknown ? toId(binding.class_name) : (binding.namespace_id ?? null),
        })) as Attributes[]
      // The response of an upload has no bindings, so the state has no id of a namespace of objects.
      const bindings = withObjectIds(() => null)
      await account.upload(name, {
        content: readContent(planned),
        bindings: withObjectIds(className => toObjectNamespaceId(name, className)),
        // The provider reads migrations from the configuration, because a refresh cannot find them.
        migration: parseMigration(migrations),
        observability: isObject(planned.observability) ? planned.observability : null,
      })
      const uploadResult: Attributes = {
        ...readMetadata(account, name),
        id: name,
        startup_time_ms: 7,
      }
      const known = Object.entries(planned).map(([attribute, value]) => [
        attribute,
        value instanceof Unknown ? (uploadResult[attribute] ?? null) : value,
      ])
      return { ...Object.fromEntries(known), bindings, migrations }
    },

    read(state) {
      const name = String(state.script_name)
      const script = account.scripts.get(name)
      if (!script) return null
      const previous = getBindings(state)
      const isSame = (left: Attributes, right: Attributes) => left.name === right.name && left.type === right.type
      const isSecret = ({ type }: Attributes) => type === 'secret_text'
      return {
        ...state,
        ...readMetadata(account, name),
        // The provider keeps known bindings as they are in the state, and the API never returns a secret: a refresh shows
        // only that a secret is missing, or that there is another binding that is not a secret.
        bindings: [
          ...previous.filter(known => !isSecret(known) || script.bindings.some(binding => isSame(known, binding))),
          ...script.bindings.filter(binding => !isSecret(binding) && !previous.some(known => isSame(known, binding))),
        ],
        observability: merge(state.observability ?? null, account.readObservability(name)),
        content: isText(state.content_file) ? null : script.content,
        content_sha256: isText(state.content_sha256) ? sha256(script.content) : null,
      }
    },

    remove: ({ script_name }) => account.deleteScript(String(script_name)),

    import(id) {
      const parts = parseImportId(id, 'account_id', 'script_name')
      return { ...parts, id: parts.script_name ?? null }
    },

    validate(config) {
      const { content_sha256 = null, content_file = null } = config
      if (!isText(content_sha256) || !isText(content_file)) return null
      if (content_sha256 === sha256(readContent(config))) return null
      return { attribute: 'content_sha256', detail: `content_sha256 does not match ${content_file}` }
    },
  }
}

/** The list of the scripts of the account. */
const scriptsDataSource = (account: Account, schema: Schema): DataSource => ({
  schema,
  read: config => ({
    ...config,
    result: [...account.scripts.keys()].map(id => ({
      ...readMetadata(account, id),
      id,
      observability: account.readObservability(id),
    })),
  }),
})

/** The values of `found` over those of `known`, as a refresh combines them: what the API does not return is kept. */
function merge(known: Value, found: Value): Value {
  if (found === null) return known
  if (!isObject(known) || !isObject(found)) return found
  const names = [...new Set([...Object.keys(known), ...Object.keys(found)])]
  return Object.fromEntries(names.map(name => [name, merge(known[name] ?? null, found[name] ?? null)]))
}

/** The id of a Durable Object namespace. It is stable as long as the script exists. */
export const toObjectNamespaceId = (script: string, className: Value | undefined): string =>
  sha256(`${script} ${className}`).slice(0, 32)

/** `directory` is the working directory of Terraform; the path of the script is relative to it. */
export const cloudflare = (account: Account, directory: string): Provider => ({
  name: 'Cloudflare',
  source: 'cloudflare/cloudflare',
  schema: cloudflareProvider,
  resources: {
    cloudflare_workers_kv_namespace: { schema: namespace, version: 500, behavior: namespaceResource(account) },
    cloudflare_workers_script: { schema: script, version: 500, behavior: scriptResource(account, directory) },
    cloudflare_workers_script_subdomain: { schema: scriptSubdomain, behavior: subdomainResource(account) },
    cloudflare_workers_custom_domain: { schema: customDomain, version: 500, behavior: domainResource(account) },
  },
  dataSources: { cloudflare_workers_scripts: scriptsDataSource(account, scripts) },
})

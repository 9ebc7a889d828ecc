import { allComputed, type Nested, type Schema } from '@pool/test-kit/terraform/schema.ts'

/**
 * What the module uses of the schemas of the Cloudflare provider 5.19.1 (`terraform providers schema -json`): four resources
 * and a data source. Plan modifiers and defaults are from the source of that version. REAL_PROVIDERS=1 runs the same tests
 * with the real provider.
 */

const single = (attributes: Schema): Nested => ({ nesting: 'single', attributes })
const list = (attributes: Schema): Nested => ({ nesting: 'list', attributes })

export const cloudflareProvider: Schema = {
  api_token: { type: 'string', optional: true, sensitive: true },
}

export const namespace: Schema = {
  account_id: { type: 'string', optional: true, replaces: true },
  id: { type: 'string', computed: true, keepsValue: true },
  supports_url_encoding: { type: 'bool', computed: true },
  title: { type: 'string', required: true },
}

const binding: Schema = {
  class_name: { type: 'string', optional: true, computed: true, computedFor: 'durable_object_namespace' },
  dataset: { type: 'string', optional: true },
  name: { type: 'string', required: true },
  namespace_id: { type: 'string', optional: true, computed: true, computedFor: 'durable_object_namespace' },
  secret_name: { type: 'string', optional: true },
  simple: {
    type: single({
      limit: { type: 'number', required: true },
      period: { type: 'number', required: true },
    }),
    optional: true,
  },
  store_id: { type: 'string', optional: true },
  text: { type: 'string', optional: true, sensitive: true },
  type: { type: 'string', required: true },
}

const migrations: Schema = {
  new_sqlite_classes: { type: ['list', 'string'], optional: true },
  new_tag: { type: 'string', optional: true },
  old_tag: { type: 'string', optional: true },
}

const namedHandler: Schema = {
  handlers: { type: ['list', 'string'], computed: true },
  name: { type: 'string', computed: true },
}

const observability: Schema = {
  enabled: { type: 'bool', required: true },
  head_sampling_rate: { type: 'number', optional: true },
  logs: {
    type: single({
      enabled: { type: 'bool', required: true },
      head_sampling_rate: { type: 'number', optional: true },
      invocation_logs: { type: 'bool', required: true },
      persist: { type: 'bool', optional: true, computed: true, default: true },
    }),
    optional: true,
  },
  traces: {
    type: single({
      enabled: { type: 'bool', optional: true },
      head_sampling_rate: { type: 'number', optional: true },
      persist: { type: 'bool', optional: true, computed: true, default: true },
    }),
    optional: true,
  },
}

export const script: Schema = {
  account_id: { type: 'string', optional: true, replaces: true },
  bindings: {
    type: list(binding),
    optional: true,
    computed: true,
  },
  compatibility_date: { type: 'string', optional: true, computed: true, default: '' },
  compatibility_flags: { type: ['set', 'string'], optional: true, computed: true },
  content: { type: 'string', optional: true },
  content_file: { type: 'string', optional: true },
  content_sha256: { type: 'string', optional: true },
  created_on: { type: 'string', computed: true, keepsValue: true },
  etag: { type: 'string', computed: true },
  handlers: { type: ['list', 'string'], computed: true },
  has_assets: { type: 'bool', computed: true },
  has_modules: { type: 'bool', computed: true },
  id: { type: 'string', computed: true, keepsValue: true, replaces: true },
  last_deployed_from: { type: 'string', computed: true },
  main_module: { type: 'string', optional: true },
  migration_tag: { type: 'string', computed: true },
  migrations: {
    type: single(migrations),
    optional: true,
  },
  modified_on: { type: 'string', computed: true },
  named_handlers: {
    type: list(namedHandler),
    computed: true,
  },
  observability: {
    type: single(observability),
    optional: true,
  },
  script_name: { type: 'string', required: true, replaces: true },
  startup_time_ms: { type: 'number', computed: true },
  usage_model: { type: 'string', optional: true, computed: true, default: 'standard' },
}

export const scriptSubdomain: Schema = {
  account_id: { type: 'string', optional: true, replaces: true },
  enabled: { type: 'bool', required: true },
  id: { type: 'string', computed: true, keepsValue: true },
  previews_enabled: { type: 'bool', optional: true, computed: true },
  script_name: { type: 'string', required: true, replaces: true },
}

export const customDomain: Schema = {
  account_id: { type: 'string', optional: true, replaces: true },
  cert_id: { type: 'string', computed: true },
  environment: { type: 'string', optional: true, computed: true, replaces: 'if-configured' },
  hostname: { type: 'string', required: true, replaces: true },
  id: { type: 'string', computed: true, keepsValue: true, replaces: true },
  service: { type: 'string', required: true, replaces: true },
  zone_id: { type: 'string', optional: true, computed: true, replaces: 'if-configured' },
  zone_name: { type: 'string', optional: true, computed: true, replaces: 'if-configured' },
}

/** An element of the list of scripts. */
const listedScript: Schema = {
  created_on: { type: 'string' },
  etag: { type: 'string' },
  handlers: { type: ['list', 'string'] },
  has_assets: { type: 'bool' },
  has_modules: { type: 'bool' },
  id: { type: 'string' },
  last_deployed_from: { type: 'string' },
  migration_tag: { type: 'string' },
  modified_on: { type: 'string' },
  named_handlers: { type: list(namedHandler) },
  observability: { type: single(observability) },
  usage_model: { type: 'string' },
}

export const scripts: Schema = {
  account_id: { type: 'string', optional: true },
  result: { type: list(allComputed(listedScript)), computed: true },
}

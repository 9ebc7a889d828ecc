import { allComputed, type Nested, type Schema } from '@pool/test-kit/terraform/schema.ts'

/**
 * The schemas that the Cloudflare provider 5.19.1 prints (`terraform providers schema -json`): the four resources and the data
 * source that the module uses, with every attribute. The printed schemas omit plan modifiers and defaults; these are from the
 * source of that version.
 */

const single = (attributes: Schema): Nested => ({ nesting: 'single', attributes })
const list = (attributes: Schema): Nested => ({ nesting: 'list', attributes })
const set = (attributes: Schema): Nested => ({ nesting: 'set', attributes })

export const cloudflareProvider: Schema = {
  api_key: { type: 'string', optional: true, sensitive: true },
  api_token: { type: 'string', optional: true, sensitive: true },
  api_user_service_key: { type: 'string', optional: true, sensitive: true },
  base_url: { type: 'string', optional: true },
  email: { type: 'string', optional: true },
  user_agent_operator_suffix: { type: 'string', optional: true },
}

export const namespace: Schema = {
  account_id: { type: 'string', optional: true, replaces: true },
  id: { type: 'string', computed: true, keepsValue: true },
  supports_url_encoding: { type: 'bool', computed: true },
  title: { type: 'string', required: true },
}

const binding: Schema = {
  algorithm: { type: 'string', optional: true },
  allowed_destination_addresses: { type: ['list', 'string'], optional: true },
  allowed_sender_addresses: { type: ['list', 'string'], optional: true },
  app_id: { type: 'string', optional: true },
  bucket_name: { type: 'string', optional: true },
  certificate_id: { type: 'string', optional: true },
  class_name: { type: 'string', optional: true, computed: true, computedFor: 'durable_object_namespace' },
  database_id: { type: 'string', optional: true },
  dataset: { type: 'string', optional: true },
  destination_address: { type: 'string', optional: true },
  dispatch_namespace: { type: 'string', optional: true },
  entrypoint: { type: 'string', optional: true },
  environment: { type: 'string', optional: true },
  format: { type: 'string', optional: true },
  id: { type: 'string', optional: true },
  index_name: { type: 'string', optional: true },
  instance_name: { type: 'string', optional: true },
  json: { type: 'string', optional: true },
  jurisdiction: { type: 'string', optional: true },
  key_base64: { type: 'string', optional: true, sensitive: true },
  key_jwk: { type: 'string', optional: true, sensitive: true },
  name: { type: 'string', required: true },
  namespace: { type: 'string', optional: true },
  namespace_id: { type: 'string', optional: true, computed: true, computedFor: 'durable_object_namespace' },
  network_id: { type: 'string', optional: true },
  old_name: { type: 'string', optional: true },
  outbound: {
    type: single({
      params: { type: ['list', 'string'], optional: true },
      worker: {
        type: single({
          environment: { type: 'string', optional: true },
          service: { type: 'string', optional: true },
        }),
        optional: true,
      },
    }),
    optional: true,
  },
  part: { type: 'string', optional: true },
  pipeline: { type: 'string', optional: true },
  queue_name: { type: 'string', optional: true },
  script_name: { type: 'string', optional: true },
  secret_name: { type: 'string', optional: true },
  service: { type: 'string', optional: true },
  service_id: { type: 'string', optional: true },
  simple: {
    type: single({
      limit: { type: 'number', required: true },
      period: { type: 'number', required: true },
    }),
    optional: true,
  },
  store_id: { type: 'string', optional: true },
  text: { type: 'string', optional: true, sensitive: true },
  tunnel_id: { type: 'string', optional: true },
  type: { type: 'string', required: true },
  usages: { type: ['set', 'string'], optional: true },
  version_id: { type: 'string', optional: true },
  workflow_name: { type: 'string', optional: true },
}

const classMigrations: Schema = {
  deleted_classes: { type: ['list', 'string'], optional: true },
  new_classes: { type: ['list', 'string'], optional: true },
  new_sqlite_classes: { type: ['list', 'string'], optional: true },
  renamed_classes: {
    type: list({
      from: { type: 'string', optional: true },
      to: { type: 'string', optional: true },
    }),
    optional: true,
  },
  transferred_classes: {
    type: list({
      from: { type: 'string', optional: true },
      from_script: { type: 'string', optional: true },
      to: { type: 'string', optional: true },
    }),
    optional: true,
  },
}

const migrations: Schema = {
  ...classMigrations,
  new_tag: { type: 'string', optional: true },
  old_tag: { type: 'string', optional: true },
  steps: { type: list(classMigrations), optional: true },
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
      destinations: { type: ['list', 'string'], optional: true },
      enabled: { type: 'bool', required: true },
      head_sampling_rate: { type: 'number', optional: true },
      invocation_logs: { type: 'bool', required: true },
      persist: { type: 'bool', optional: true, computed: true, default: true },
    }),
    optional: true,
  },
  traces: {
    type: single({
      destinations: { type: ['list', 'string'], optional: true },
      enabled: { type: 'bool', optional: true },
      head_sampling_rate: { type: 'number', optional: true },
      persist: { type: 'bool', optional: true, computed: true, default: true },
    }),
    optional: true,
  },
}

const placement: Schema = {
  host: { type: 'string', computed: true },
  hostname: { type: 'string', computed: true },
  last_analyzed_at: { type: 'string', computed: true },
  mode: { type: 'string', optional: true },
  region: { type: 'string', computed: true },
  status: { type: 'string', computed: true },
  target: {
    type: list({
      host: { type: 'string', computed: true },
      hostname: { type: 'string', computed: true },
      region: { type: 'string', computed: true },
    }),
    computed: true,
  },
}

const tailConsumer: Schema = {
  environment: { type: 'string', optional: true },
  namespace: { type: 'string', optional: true },
  service: { type: 'string', required: true },
}

export const script: Schema = {
  account_id: { type: 'string', optional: true, replaces: true },
  annotations: {
    type: single({
      workers_message: { type: 'string', optional: true },
      workers_tag: { type: 'string', optional: true },
      workers_triggered_by: { type: 'string', computed: true },
    }),
    optional: true,
    computed: true,
  },
  assets: {
    type: single({
      asset_manifest_sha256: { type: 'string', computed: true },
      config: {
        type: single({
          headers: { type: 'string', optional: true },
          html_handling: { type: 'string', optional: true },
          not_found_handling: { type: 'string', optional: true },
          redirects: { type: 'string', optional: true },
          run_worker_first: { type: 'dynamic', optional: true },
          serve_directly: { type: 'bool', optional: true, deprecated: true },
        }),
        optional: true,
      },
      directory: { type: 'string', optional: true },
      jwt: { type: 'string', optional: true, sensitive: true },
    }),
    optional: true,
  },
  bindings: {
    type: list(binding),
    optional: true,
    computed: true,
  },
  body_part: { type: 'string', optional: true },
  compatibility_date: { type: 'string', optional: true, computed: true, default: '' },
  compatibility_flags: { type: ['set', 'string'], optional: true, computed: true },
  content: { type: 'string', optional: true },
  content_file: { type: 'string', optional: true },
  content_sha256: { type: 'string', optional: true },
  content_type: { type: 'string', optional: true },
  created_on: { type: 'string', computed: true, keepsValue: true },
  etag: { type: 'string', computed: true },
  handlers: { type: ['list', 'string'], computed: true },
  has_assets: { type: 'bool', computed: true },
  has_modules: { type: 'bool', computed: true },
  id: { type: 'string', computed: true, keepsValue: true, replaces: true },
  keep_assets: { type: 'bool', optional: true },
  keep_bindings: { type: ['set', 'string'], optional: true },
  last_deployed_from: { type: 'string', computed: true },
  limits: {
    type: single({
      cpu_ms: { type: 'number', optional: true },
      subrequests: { type: 'number', optional: true },
    }),
    optional: true,
  },
  logpush: { type: 'bool', optional: true, computed: true, default: false },
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
  placement: {
    type: single(placement),
    optional: true,
    computed: true,
  },
  placement_mode: { type: 'string', computed: true, deprecated: true },
  placement_status: { type: 'string', computed: true, deprecated: true },
  script_name: { type: 'string', required: true, replaces: true },
  startup_time_ms: { type: 'number', computed: true },
  tail_consumers: {
    type: set(tailConsumer),
    optional: true,
    computed: true,
  },
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
  environment: { type: 'string', optional: true, computed: true, deprecated: true, replaces: 'if-configured' },
  hostname: { type: 'string', required: true, replaces: true },
  id: { type: 'string', computed: true, keepsValue: true, replaces: true },
  service: { type: 'string', required: true, replaces: true },
  zone_id: { type: 'string', optional: true, computed: true, replaces: 'if-configured' },
  zone_name: { type: 'string', optional: true, computed: true, replaces: 'if-configured' },
}

const route: Schema = {
  id: { type: 'string' },
  pattern: { type: 'string' },
  script: { type: 'string' },
}

/** An element of the list of scripts. */
const listedScript: Schema = {
  compatibility_date: { type: 'string' },
  compatibility_flags: { type: ['set', 'string'] },
  created_on: { type: 'string' },
  etag: { type: 'string' },
  handlers: { type: ['list', 'string'] },
  has_assets: { type: 'bool' },
  has_modules: { type: 'bool' },
  id: { type: 'string' },
  last_deployed_from: { type: 'string' },
  logpush: { type: 'bool' },
  migration_tag: { type: 'string' },
  modified_on: { type: 'string' },
  named_handlers: { type: list(namedHandler) },
  observability: { type: single(observability) },
  placement: { type: single(placement) },
  placement_mode: { type: 'string', deprecated: true },
  placement_status: { type: 'string', deprecated: true },
  routes: { type: list(route) },
  tag: { type: 'string' },
  tags: { type: ['set', 'string'] },
  tail_consumers: { type: set(tailConsumer) },
  usage_model: { type: 'string' },
}

export const scripts: Schema = {
  account_id: { type: 'string', optional: true },
  max_items: { type: 'number', optional: true },
  result: { type: list(allComputed(listedScript)), computed: true },
  tags: { type: 'string', optional: true },
}

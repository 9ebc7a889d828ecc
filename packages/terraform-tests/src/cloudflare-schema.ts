import type { Schema } from './schema.ts'

/**
 * A transcription of the schema of the Cloudflare provider, version 5, from its documentation and source as of 2026-11-21:
 * the four resources that the module uses. It omits bindings that a lease witness cannot have, and the attributes for
 * assets, containers and gradual deployments.
 */

export const cloudflareProvider: Schema = {
  api_token: { type: 'string', optional: true, sensitive: true },
  api_key: { type: 'string', optional: true, sensitive: true },
  api_user_service_key: { type: 'string', optional: true, sensitive: true },
  email: { type: 'string', optional: true },
  base_url: { type: 'string', optional: true },
}

const binding: Schema = {
  name: { type: 'string', required: true },
  type: { type: 'string', required: true },
  text: { type: 'string', optional: true, sensitive: true },
  namespace_id: { type: 'string', optional: true, computed: true, computedFor: 'durable_object_namespace' },
  class_name: { type: 'string', optional: true },
  script_name: { type: 'string', optional: true },
  environment: { type: 'string', optional: true },
  service: { type: 'string', optional: true },
  json: { type: 'string', optional: true },
}

const classes = { type: ['list', 'string'], optional: true } as const

const migrations: Schema = {
  old_tag: { type: 'string', optional: true },
  new_tag: { type: 'string', optional: true },
  new_classes: classes,
  new_sqlite_classes: classes,
  deleted_classes: classes,
}

const observability: Schema = {
  enabled: { type: 'bool', required: true },
  head_sampling_rate: { type: 'number', optional: true },
  logs: {
    type: {
      nesting: 'single',
      attributes: {
        enabled: { type: 'bool', required: true },
        invocation_logs: { type: 'bool', required: true },
        head_sampling_rate: { type: 'number', optional: true },
        persist: { type: 'bool', optional: true, computed: true, default: true },
      },
    },
    optional: true,
  },
}

export const script: Schema = {
  id: { type: 'string', computed: true, keepsValue: true, replaces: true },
  account_id: { type: 'string', required: true, replaces: true },
  script_name: { type: 'string', required: true, replaces: true },
  content: { type: 'string', optional: true },
  content_file: { type: 'string', optional: true },
  content_sha256: { type: 'string', optional: true },
  content_type: { type: 'string', optional: true },
  main_module: { type: 'string', optional: true },
  body_part: { type: 'string', optional: true },
  compatibility_date: { type: 'string', optional: true, computed: true },
  compatibility_flags: { type: ['set', 'string'], optional: true, computed: true },
  bindings: { type: { nesting: 'list', attributes: binding }, optional: true, computed: true },
  migrations: { type: { nesting: 'single', attributes: migrations }, optional: true },
  observability: { type: { nesting: 'single', attributes: observability }, optional: true },
  keep_bindings: { type: ['set', 'string'], optional: true },
  logpush: { type: 'bool', optional: true, computed: true, default: false },
  usage_model: { type: 'string', optional: true, computed: true },
  created_on: { type: 'string', computed: true },
  modified_on: { type: 'string', computed: true },
  etag: { type: 'string', computed: true },
  migration_tag: { type: 'string', computed: true },
  has_modules: { type: 'bool', computed: true },
  startup_time_ms: { type: 'number', computed: true },
}

export const namespace: Schema = {
  id: { type: 'string', computed: true, keepsValue: true },
  account_id: { type: 'string', required: true, replaces: true },
  title: { type: 'string', required: true },
  supports_url_encoding: { type: 'bool', computed: true },
}

export const scriptSubdomain: Schema = {
  account_id: { type: 'string', required: true, replaces: true },
  script_name: { type: 'string', required: true, replaces: true },
  enabled: { type: 'bool', required: true },
  previews_enabled: { type: 'bool', optional: true, computed: true },
}

export const customDomain: Schema = {
  id: { type: 'string', computed: true, keepsValue: true },
  account_id: { type: 'string', required: true, replaces: true },
  zone_id: { type: 'string', optional: true, computed: true },
  zone_name: { type: 'string', optional: true, computed: true },
  hostname: { type: 'string', required: true },
  service: { type: 'string', required: true },
  environment: { type: 'string', optional: true, computed: true },
}

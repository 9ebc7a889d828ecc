import type { Schema } from './schema.ts'

/**
 * The schemas that aminueza/minio 3.11.1 prints (`terraform providers schema -json`): the provider configuration and the
 * bucket. Replacement and defaults are from the source of that version. The real provider uses protocol 5; the double has
 * its types, which do not distinguish null from zero values, in protocol 6. Defaults from the environment (MINIO_ENDPOINT and
 * others) are omitted, because the module sets all of these arguments.
 */

export const minioProvider: Schema = {
  minio_access_key: { type: 'string', optional: true, deprecated: true },
  minio_api_version: { type: 'string', optional: true },
  minio_cacert_file: { type: 'string', optional: true },
  minio_cert_file: { type: 'string', optional: true },
  minio_insecure: { type: 'bool', optional: true },
  minio_key_file: { type: 'string', optional: true, sensitive: true },
  minio_password: { type: 'string', optional: true, sensitive: true },
  minio_region: { type: 'string', optional: true },
  minio_secret_key: { type: 'string', optional: true, deprecated: true, sensitive: true },
  minio_server: { type: 'string', required: true },
  minio_session_token: { type: 'string', optional: true, sensitive: true },
  minio_ssl: { type: 'bool', optional: true },
  minio_user: { type: 'string', optional: true },
}

export const bucket: Schema = {
  id: { type: 'string', optional: true, computed: true, keepsValue: true },
  bucket: { type: 'string', optional: true, computed: true, keepsValue: true, replaces: true },
  bucket_prefix: { type: 'string', optional: true, replaces: true },
  force_destroy: { type: 'bool', optional: true, default: false },
  acl: { type: 'string', optional: true, default: 'private' },
  object_locking: { type: 'bool', optional: true, default: false },
  quota: { type: 'number', optional: true },
  arn: { type: 'string', computed: true, keepsValue: true },
  bucket_domain_name: { type: 'string', computed: true, keepsValue: true },
}

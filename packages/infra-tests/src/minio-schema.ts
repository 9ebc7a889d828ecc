import type { Schema } from './schema.ts'

/**
 * A transcription of the schema of aminueza/minio 3.5, from its documentation and source as of 2026-11-21: the provider
 * configuration and the bucket. The real provider uses protocol 5, whose type system does not distinguish null from zero
 * values; this one does. Defaults from the environment (MINIO_ENDPOINT and others) are omitted, because the module sets all
 * of these arguments.
 */

export const minioProvider: Schema = {
  minio_server: { type: 'string', required: true },
  minio_region: { type: 'string', optional: true },
  minio_user: { type: 'string', optional: true },
  minio_password: { type: 'string', optional: true },
  minio_session_token: { type: 'string', optional: true },
  minio_api_version: { type: 'string', optional: true },
  minio_ssl: { type: 'bool', optional: true },
  minio_insecure: { type: 'bool', optional: true },
  minio_cacert_file: { type: 'string', optional: true },
  minio_cert_file: { type: 'string', optional: true },
  minio_key_file: { type: 'string', optional: true },
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

import type { Schema } from './schema.ts'

/**
 * Our transcription of the schema of aminueza/minio, of what 3.5 has, from its published documentation and source as read
 * on 2026-11-21: the configuration that reaches a server, and the bucket. The real provider speaks protocol 5 with the older
 * type system, to which null and a zero value are one; this one is stricter. Two defaults of the real one come from the
 * environment instead: MINIO_ENDPOINT and the like. They are left out: the module states every argument that has one.
 */

export const provider: Schema = {
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
  id: { type: 'string', optional: true, computed: true, kept: true },
  bucket: { type: 'string', optional: true, computed: true, kept: true, replaces: true },
  bucket_prefix: { type: 'string', optional: true, replaces: true },
  force_destroy: { type: 'bool', optional: true, fallback: false },
  acl: { type: 'string', optional: true, fallback: 'private' },
  object_locking: { type: 'bool', optional: true, fallback: false },
  quota: { type: 'number', optional: true },
  arn: { type: 'string', computed: true, kept: true },
  bucket_domain_name: { type: 'string', computed: true, kept: true },
}

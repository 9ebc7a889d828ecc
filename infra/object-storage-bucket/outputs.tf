# Derived from the bucket resource, so that users of these outputs depend on it. None is a credential.

output "endpoint" {
  description = "URL of the S3 endpoint: https://<region>.<domain>."
  value       = module.inputs.endpoint
  depends_on  = [minio_s3_bucket.backups]
}

output "region" {
  description = "Region of the bucket."
  value       = module.inputs.region
  depends_on  = [minio_s3_bucket.backups]
}

output "bucket" {
  description = "Name of the bucket."
  value       = minio_s3_bucket.backups.bucket
}

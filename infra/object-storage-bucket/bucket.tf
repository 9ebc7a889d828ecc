provider "minio" {
  minio_server   = module.inputs.server
  minio_region   = module.inputs.region
  minio_user     = module.inputs.access_key
  minio_password = module.inputs.secret_key
  # Not an input: the default of the provider is plain HTTP, and MINIO_ENABLE_HTTPS in the environment would override it.
  minio_ssl = true
  # MINIO_INSECURE must not disable certificate verification either.
  minio_insecure = false
}

resource "minio_s3_bucket" "backups" {
  bucket = module.inputs.bucket
  acl    = "private"

  # The backups outlive the cluster: not even a deliberate destroy deletes a bucket with objects.
  force_destroy  = false
  object_locking = false

  lifecycle {
    # Also prevents a replacement, for example by a new name.
    prevent_destroy = true
  }
}

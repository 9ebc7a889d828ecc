provider "minio" {
  minio_server   = module.inputs.server
  minio_region   = module.inputs.region
  minio_user     = module.inputs.access_key
  minio_password = module.inputs.secret_key
  # Not an input: the provider's default is plain HTTP, and MINIO_ENABLE_HTTPS in the environment would have a say.
  minio_ssl = true
  # Nor may MINIO_INSECURE switch the verification of the certificate off.
  minio_insecure = false
}

resource "minio_s3_bucket" "backups" {
  bucket = module.inputs.bucket
  acl    = "private"

  # The archive outlives the cluster that wrote it: not even a deliberate destroy takes a bucket that has objects.
  force_destroy  = false
  object_locking = false

  lifecycle {
    # Also stops what would replace it: another name.
    prevent_destroy = true
  }
}

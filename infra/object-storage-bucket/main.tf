terraform {
  required_version = ">= 1.6.0"

  required_providers {
    minio = {
      source = "aminueza/minio"
      # Before 3.6.4, a failed lookup removes the bucket from the state. From 3.11.2 on, a private bucket is created with a
      # request for which Ceph and Hetzner do not send the only response that the provider accepts.
      version = ">= 3.6.4, < 3.11.2"
    }
  }
}

module "inputs" {
  source = "../object-storage-inputs"

  object_storage_region     = var.object_storage_region
  object_storage_access_key = var.object_storage_access_key
  object_storage_secret_key = var.object_storage_secret_key
  object_storage_bucket     = var.object_storage_bucket
  object_storage_domain     = var.object_storage_domain
}

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

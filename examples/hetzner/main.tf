terraform {
  # The bucket module requires the provider aminueza/minio, with a range of versions. .terraform.lock.hcl chooses one of each.
  required_version = ">= 1.6.0"

  required_providers {
    # It reads HCLOUD_TOKEN.
    hcloud = {
      source  = "hetznercloud/hcloud"
      version = "~> 1.68"
    }
  }
}

module "bucket" {
  source = "../../infra/object-storage-bucket"

  object_storage_region     = var.object_storage_region
  object_storage_access_key = var.object_storage_access_key
  object_storage_secret_key = var.object_storage_secret_key
  object_storage_bucket     = var.object_storage_bucket
  object_storage_domain     = var.object_storage_domain
}

# Region and bucket are outputs of the bucket, so that the secret, and a machine that gets it, exist after the bucket.
module "first_boot_secret" {
  source = "../../infra/first-boot-secret"

  object_storage_provider   = var.object_storage_provider
  object_storage_domain     = var.object_storage_domain
  object_storage_region     = module.bucket.region
  object_storage_bucket     = module.bucket.bucket
  object_storage_access_key = var.object_storage_access_key
  object_storage_secret_key = var.object_storage_secret_key
}

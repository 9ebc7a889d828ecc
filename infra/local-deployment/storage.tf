locals {
  # Whether object storage is used is not sensitive, although the value derives from sensitive ones.
  has_storage = nonsensitive(anytrue([
    var.object_storage_region != "",
    var.object_storage_bucket != "",
    var.object_storage_access_key != "",
    var.object_storage_secret_key != "",
  ]))

  expected_secret = {
    s3-endpoint   = "https://${var.object_storage_region}.${var.object_storage_domain}"
    s3-region     = var.object_storage_region
    s3-bucket     = var.object_storage_bucket
    s3-access-key = var.object_storage_access_key
    s3-secret-key = var.object_storage_secret_key
  }
}

# A module with machines passes module.first_boot_secret[0].cloud_config to the first machine. This one does not use it, so
# no key reaches the state.
module "first_boot_secret" {
  source = "../first-boot-secret"
  count  = local.has_storage ? 1 : 0

  object_storage_provider   = var.object_storage_provider
  object_storage_domain     = var.object_storage_domain
  object_storage_region     = var.object_storage_region
  object_storage_bucket     = var.object_storage_bucket
  object_storage_access_key = var.object_storage_access_key
  object_storage_secret_key = var.object_storage_secret_key
}

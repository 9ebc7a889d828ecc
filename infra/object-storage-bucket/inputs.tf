module "inputs" {
  source = "../object-storage-inputs"

  object_storage_region     = var.object_storage_region
  object_storage_access_key = var.object_storage_access_key
  object_storage_secret_key = var.object_storage_secret_key
  object_storage_bucket     = var.object_storage_bucket
  object_storage_domain     = var.object_storage_domain
}

# A stand-in for your machines, which creates none. The first machine gets module.first_boot_secret.cloud_config as its user
# data; its resource stores it, so the state then contains both keys.
module "machines" {
  source = "../../infra/local-deployment"

  deployment_id             = var.deployment_id
  org_name                  = var.org_name
  org_email                 = var.org_email
  sovereign_fqdn            = var.sovereign_fqdn
  region                    = var.region
  ssh_public_key            = var.ssh_public_key
  provider_names            = var.provider_names
  object_storage_provider   = var.object_storage_provider
  object_storage_domain     = var.object_storage_domain
  object_storage_region     = module.bucket.region
  object_storage_bucket     = module.bucket.bucket
  object_storage_access_key = var.object_storage_access_key
  object_storage_secret_key = var.object_storage_secret_key
}

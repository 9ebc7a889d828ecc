terraform {
  # The bucket module requires the provider aminueza/minio.
  required_version = ">= 1.6.0"
}

module "bucket" {
  source = "../object-storage-bucket"

  object_storage_region     = var.object_storage_region
  object_storage_access_key = var.object_storage_access_key
  object_storage_secret_key = var.object_storage_secret_key
  object_storage_bucket     = var.object_storage_bucket
  object_storage_domain     = var.object_storage_domain
}

module "machines" {
  source = "../local-deployment"

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

# A deployment that gets object storage later was applied with ../local-deployment before.

moved {
  from = terraform_data.network
  to   = module.machines.terraform_data.network
}

moved {
  from = terraform_data.control_plane
  to   = module.machines.terraform_data.control_plane
}

moved {
  from = terraform_data.first_boot
  to   = module.machines.terraform_data.first_boot
}

moved {
  from = terraform_data.load_balancer
  to   = module.machines.terraform_data.load_balancer
}

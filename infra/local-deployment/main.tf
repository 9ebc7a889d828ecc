terraform {
  # No provider: terraform_data is built into Terraform, so nothing is downloaded.
  required_version = ">= 1.6.0"
}

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

# Placeholders for cloud resources, created one after another, so that an apply has visible progress. Their inputs are in
# the state in plain text, so they must not contain a key, or a hash that allows guessing one.

resource "terraform_data" "network" {
  input = {
    deployment_id = var.deployment_id
    region        = var.region
  }
}

resource "terraform_data" "control_plane" {
  input = {
    network        = terraform_data.network.id
    address        = local.control_plane_ip
    ssh_public_key = var.ssh_public_key
    providers      = var.provider_names
  }
}

resource "terraform_data" "first_boot" {
  input = {
    control_plane  = terraform_data.control_plane.id
    object_storage = local.has_storage ? "${var.object_storage_provider}-object-storage" : null
    bucket         = local.has_storage ? var.object_storage_bucket : null
  }

  lifecycle {
    precondition {
      condition     = local.has_storage ? yamldecode(module.first_boot_secret[0].manifest).stringData == local.expected_secret : true
      error_message = "The secret of the cluster must have the five object storage values."
    }
  }
}

resource "terraform_data" "load_balancer" {
  input = {
    name    = var.sovereign_fqdn
    address = local.load_balancer_ip
    targets = [terraform_data.first_boot.id]
  }
}

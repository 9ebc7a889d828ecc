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

# Stand-ins for what a module of a cloud makes, one after the other, so that an apply is seen to go on. What is in their
# inputs ends in the state in clear: no key, and no hash of one, which could be guessed at.

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
      error_message = "The secret for the cluster does not hold the five values of the object storage."
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

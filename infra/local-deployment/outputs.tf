locals {
  digest = sha256(var.sovereign_fqdn)

  # Loopback (RFC 1122, 3.2.1.3 (g)): the whole of 127/8 is this machine, and nothing that is published reaches another.
  # By the name, so that a deployment keeps its address and two have rarely the same.
  load_balancer_ip = format("127.%d.%d.%d", parseint(substr(local.digest, 0, 2), 16), parseint(substr(local.digest, 2, 2), 16), parseint(substr(local.digest, 4, 2), 16) % 254 + 1)
  control_plane_ip = format("127.%d.%d.%d", parseint(substr(local.digest, 6, 2), 16), parseint(substr(local.digest, 8, 2), 16), parseint(substr(local.digest, 10, 2), 16) % 254 + 1)
}

output "load_balancer_ip" {
  description = "IPv4 address that the deployment's name gets: unicast, first octet 1 to 223. The one output that a deployment module must have."
  value       = terraform_data.load_balancer.output.address
}

output "control_plane_ip" {
  description = "IPv4 address of the first machine."
  value       = terraform_data.control_plane.output.address
}

output "details" {
  description = "Whatever else is worth telling of the deployment: shown to whoever may see it, so nothing sensitive."
  value = {
    object_storage_secret = try(terraform_data.first_boot.output.object_storage, null)
  }
}

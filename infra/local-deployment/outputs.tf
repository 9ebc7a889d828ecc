locals {
  digest = sha256(var.sovereign_fqdn)

  # An address of the benchmarking network 198.18.0.0/15 (RFC 2544), which is not routed, so that published records never
  # lead to a machine of someone else. It derives from the name, so that a deployment keeps its address and collisions are
  # rare.
  load_balancer_ip = format("198.%d.%d.%d", 18 + parseint(substr(local.digest, 0, 2), 16) % 2, parseint(substr(local.digest, 2, 2), 16), parseint(substr(local.digest, 4, 2), 16) % 254 + 1)
  control_plane_ip = format("198.%d.%d.%d", 18 + parseint(substr(local.digest, 6, 2), 16) % 2, parseint(substr(local.digest, 8, 2), 16), parseint(substr(local.digest, 10, 2), 16) % 254 + 1)
}

output "load_balancer_ip" {
  description = "IPv4 address for the records of the deployment: unicast, and neither link-local (169.254/16) nor, except with the local DNS provider, loopback (127/8). The only required output of a deployment module."
  value       = terraform_data.load_balancer.output.address
}

output "control_plane_ip" {
  description = "IPv4 address of the first machine."
  value       = terraform_data.control_plane.output.address
}

output "details" {
  description = "Other outputs as an object. Shown to every reader of the deployment, so it must not be sensitive."
  value = {
    object_storage_secret = try(terraform_data.first_boot.output.object_storage, null)
  }
}

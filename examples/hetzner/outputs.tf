output "load_balancer_ip" {
  description = "IPv4 address for the records of the deployment."
  value       = hcloud_load_balancer.ingress.ipv4
}

output "control_plane_ip" {
  description = "IPv4 address of the first machine."
  value       = hcloud_server.control_plane.ipv4_address
}

output "object_storage_bucket" {
  description = "Name of the bucket. A module with this output makes the bucket of a deployment."
  value       = module.bucket.bucket
}

output "details" {
  description = "Shown to every reader of the deployment, so it has no credential."
  value = {
    object_storage_endpoint = module.bucket.endpoint
    object_storage_bucket   = module.bucket.bucket
  }
}

output "load_balancer_ip" {
  description = "As of local-deployment."
  value       = module.machines.load_balancer_ip
}

output "control_plane_ip" {
  description = "As of local-deployment."
  value       = module.machines.control_plane_ip
}

output "details" {
  description = "As of local-deployment."
  value       = module.machines.details
}

output "object_storage_bucket" {
  description = "Name of the bucket."
  value       = module.bucket.bucket
}

output "manifest" {
  description = "The Kubernetes secret, as YAML."
  value       = local.manifest
  sensitive   = true
}

output "cloud_config" {
  description = "A cloud-config that writes the secret to a file that only root can read."
  value       = local.cloud_config
  sensitive   = true
}

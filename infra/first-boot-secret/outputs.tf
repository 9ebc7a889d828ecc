output "manifest" {
  description = "The Kubernetes secret, as YAML."
  value       = local.manifest
  sensitive   = true
}

output "cloud_config" {
  description = "A cloud-config with which k3s makes the namespace and the secret at the first boot."
  value       = local.cloud_config
  sensitive   = true

  precondition {
    # https://docs.hetzner.cloud/reference/cloud#servers-create-a-server
    condition     = nonsensitive(length(local.cloud_config)) <= 32768
    error_message = "The cloud-config has more than 32 KiB, which Hetzner accepts as user data: check the keys."
  }
}

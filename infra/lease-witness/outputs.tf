locals {
  custom_domain_url = one([for domain in cloudflare_workers_custom_domain.witness : "https://${domain.hostname}"])

  # The subdomain belongs to the account and cannot be derived from its id.
  workers_dev_url = (
    cloudflare_workers_script_subdomain.witness.enabled && var.workers_dev_subdomain != null
    ? "https://${cloudflare_workers_script_subdomain.witness.script_name}.${var.workers_dev_subdomain}.workers.dev"
    : null
  )
}

output "url" {
  description = "Base URL for clients: the custom domain if set, else workers.dev; null if unknown."
  value       = local.custom_domain_url != null ? local.custom_domain_url : local.workers_dev_url
}

output "custom_domain_url" {
  description = "Base URL with the custom domain, or null."
  value       = local.custom_domain_url
}

output "workers_dev_url" {
  description = "Base URL at workers.dev; null if it is disabled or workers_dev_subdomain is not set."
  value       = local.workers_dev_url
}

output "script_name" {
  description = "Name of the Worker."
  value       = cloudflare_workers_script.witness.script_name
}

output "namespace_id" {
  description = "Id of the KV namespace."
  value       = cloudflare_workers_kv_namespace.leases.id
}

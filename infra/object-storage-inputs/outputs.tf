# Only valid values reach the outputs. So a nonsensitive value below is one of three regions or a valid bucket name, never a
# key that was assigned to the wrong variable and that a plan would show.

output "region" {
  description = "One of the three regions."
  value       = nonsensitive(var.object_storage_region)
}

output "bucket" {
  description = "A valid bucket name."
  value       = nonsensitive(var.object_storage_bucket)
}

output "server" {
  description = "Host name of the endpoint, with the port of the domain if it has one."
  value       = "${nonsensitive(var.object_storage_region)}.${var.object_storage_domain}"
}

output "endpoint" {
  description = "URL of the endpoint: https://<region>.<domain>."
  value       = "https://${nonsensitive(var.object_storage_region)}.${var.object_storage_domain}"
}

output "access_key" {
  description = "The access key."
  value       = var.object_storage_access_key
  sensitive   = true
}

output "secret_key" {
  description = "The secret key."
  value       = var.object_storage_secret_key
  sensitive   = true
}

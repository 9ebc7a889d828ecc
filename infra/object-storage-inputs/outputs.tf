# A value that breaks a rule never gets here. So what is called not sensitive below is one of three regions and a legal
# name of a bucket, and no key that was put into the wrong variable and that a plan would then show.

output "region" {
  description = "One of the three regions."
  value       = nonsensitive(var.object_storage_region)
}

output "bucket" {
  description = "A legal name of a bucket."
  value       = nonsensitive(var.object_storage_bucket)
}

output "server" {
  description = "Host name of the endpoint, and a port where the domain has one."
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

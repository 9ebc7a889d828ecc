# Those of ../local-deployment, which describes them.

variable "deployment_id" { type = string }
variable "org_name" { type = string }
variable "org_email" { type = string }
variable "sovereign_fqdn" { type = string }
variable "region" { type = string }
variable "ssh_public_key" { type = string }
variable "provider_names" { type = list(string) }
variable "object_storage_provider" { type = string }
variable "object_storage_domain" { type = string }
variable "object_storage_region" { type = string }
variable "object_storage_bucket" { type = string }

variable "object_storage_access_key" {
  type      = string
  sensitive = true
}

variable "object_storage_secret_key" {
  type      = string
  sensitive = true
}

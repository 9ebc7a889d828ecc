# The interface of a deployment module: the allocation API calls whichever module it is told to with exactly these. A
# module of one's own declares all of them, with these names and types, whether it uses them or not.

variable "deployment_id" {
  type        = string
  description = "Id of the deployment at the API."
  nullable    = false
}

variable "org_name" {
  type        = string
  description = "Name of the organisation that the deployment is for."
  nullable    = false
}

variable "org_email" {
  type        = string
  description = "Its address for mail."
  nullable    = false
}

variable "sovereign_fqdn" {
  type        = string
  description = "Full name of the deployment, in lower case: acme.pool.example."
  nullable    = false

  validation {
    condition     = var.sovereign_fqdn != ""
    error_message = "sovereign_fqdn is empty."
  }
}

variable "region" {
  type        = string
  description = "Region of the machines."
  nullable    = false
}

variable "ssh_public_key" {
  type        = string
  description = "Public key that may log in to the machines."
  nullable    = false
}

variable "provider_names" {
  type        = list(string)
  description = "The providers that were chosen for the deployment."
  nullable    = false
}

variable "object_storage_provider" {
  type        = string
  description = "Name of the storage provider: the cluster's secret is <provider>-object-storage."
  nullable    = false
}

variable "object_storage_domain" {
  type        = string
  description = "Its domain, without scheme and region; a port may follow."
  nullable    = false
}

variable "object_storage_region" {
  type        = string
  description = "Region of the bucket. This and the three below are all empty when the deployment has no object storage."
  nullable    = false
}

variable "object_storage_bucket" {
  type        = string
  description = "Name of the bucket."
  nullable    = false
}

variable "object_storage_access_key" {
  type        = string
  description = "Access key."
  sensitive   = true
  nullable    = false
}

variable "object_storage_secret_key" {
  type        = string
  description = "Secret key."
  sensitive   = true
  nullable    = false
}

# The interface of a deployment module: the allocation API passes exactly these variables. Your own module must declare all
# of them with these names and types, also unused ones.

variable "deployment_id" {
  type        = string
  description = "Id of the deployment at the API."
  nullable    = false
}

variable "org_name" {
  type        = string
  description = "Name of the organisation."
  nullable    = false
}

variable "org_email" {
  type        = string
  description = "E-mail address of the organisation."
  nullable    = false
}

variable "sovereign_fqdn" {
  type        = string
  description = "FQDN of the deployment in lower case, such as acme.pool.example."
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
  description = "SSH public key for logins to the machines."
  nullable    = false
}

variable "provider_names" {
  type        = list(string)
  description = "Selected providers."
  nullable    = false
}

variable "object_storage_provider" {
  type        = string
  description = "Name of the object storage provider. The secret of the cluster is <provider>-object-storage."
  nullable    = false
}

variable "object_storage_domain" {
  type        = string
  description = "Domain of the object storage provider without scheme and region; may include a port."
  nullable    = false
}

variable "object_storage_region" {
  type        = string
  description = "Region of the bucket. This and the next three variables are empty for a deployment without object storage."
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

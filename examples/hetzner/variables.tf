# The interface of a deployment module: infra/local-deployment/README.md. The allocation API passes exactly these variables.

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
}

variable "region" {
  type        = string
  description = "Location of the machines, in the network zone eu-central."
  nullable    = false

  validation {
    condition     = contains(["fsn1", "nbg1", "hel1"], var.region)
    error_message = "region must be fsn1, nbg1 or hel1."
  }
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
  description = "Region of the bucket: fsn1, nbg1 or hel1. This module needs object storage."
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

# With a default: the API does not pass them.

variable "server_type" {
  type        = string
  description = "Type of the machine; `hcloud server-type list` shows those of each location."
  default     = "cx33"
}

variable "k3s_version" {
  type        = string
  description = "Release of k3s, as its installer takes it."
  default     = "v1.34.2+k3s1"
}

# ../object-storage-inputs validates sensitive inputs; its README explains why it is a separate module.

variable "object_storage_provider" {
  type        = string
  description = "Name of the storage provider: the secret is <provider>-object-storage."
  nullable    = false

  validation {
    condition     = can(regex("^[a-z0-9]([a-z0-9-]{0,45}[a-z0-9])?$", var.object_storage_provider))
    error_message = "object_storage_provider must consist of lower-case letters, digits and inner hyphens, at most 47: the name of the secret is one label."
  }
}

variable "object_storage_domain" {
  type        = string
  description = "Domain of the storage provider without scheme and region; may include a port."
  default     = "your-objectstorage.com"
  nullable    = false
}

variable "object_storage_region" {
  type        = string
  description = "Region of the bucket: fsn1, nbg1 or hel1."
  sensitive   = true
  nullable    = false
}

variable "object_storage_bucket" {
  type        = string
  description = "Name of the bucket. Use the output of the bucket module, so that the secret depends on the bucket."
  sensitive   = true
  nullable    = false
}

variable "object_storage_access_key" {
  type        = string
  description = "Access key: 16 or more visible ASCII characters."
  sensitive   = true
  nullable    = false
}

variable "object_storage_secret_key" {
  type        = string
  description = "Secret key: 32 or more visible ASCII characters."
  sensitive   = true
  nullable    = false
}

variable "path" {
  type        = string
  description = "File that cloud-init writes to the first node. Null: /var/lib/first-boot/<provider>-object-storage.yaml."
  default     = null

  validation {
    condition     = var.path == null ? true : can(regex("^(/[A-Za-z0-9._-]+)+$", var.path))
    error_message = "path must be an absolute path of letters, digits, dots, hyphens and underscores."
  }
}

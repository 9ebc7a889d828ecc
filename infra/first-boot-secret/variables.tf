# The rules of what is sensitive stand in ../object-storage-inputs, and its page says why they stand apart.

variable "object_storage_provider" {
  type        = string
  description = "Name of the storage provider: the secret is <provider>-object-storage."
  nullable    = false

  validation {
    condition     = can(regex("^[a-z0-9]([a-z0-9-]{0,45}[a-z0-9])?$", var.object_storage_provider))
    error_message = "object_storage_provider is made of lower-case letters, digits and inner hyphens, 47 at most: the name of the secret is one label."
  }
}

variable "object_storage_domain" {
  type        = string
  description = "Domain of the storage provider, without scheme and region; a port may follow."
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
  description = "Name of the bucket. Taken from the output of the module that makes it, the secret waits until it is there."
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
  description = "File that cloud-init writes on the first node. Null: /var/lib/first-boot/<provider>-object-storage.yaml."
  default     = null

  validation {
    condition     = var.path == null ? true : can(regex("^(/[A-Za-z0-9._-]+)+$", var.path))
    error_message = "path is an absolute path of letters, digits, dots, hyphens and underscores."
  }
}

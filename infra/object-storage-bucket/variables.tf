# ../object-storage-inputs validates all five; its README explains why it is a separate module.

variable "object_storage_region" {
  type        = string
  description = "Region of the bucket: fsn1, nbg1 or hel1."
  sensitive   = true
  nullable    = false
}

variable "object_storage_access_key" {
  type        = string
  description = "Access key from the console of the storage provider: 16 or more visible ASCII characters."
  sensitive   = true
  nullable    = false
}

variable "object_storage_secret_key" {
  type        = string
  description = "Secret key: 32 or more visible ASCII characters."
  sensitive   = true
  nullable    = false
}

variable "object_storage_bucket" {
  type        = string
  description = "Name of the bucket, by the naming rules of S3. A new name would replace the bucket, so a change is rejected."
  sensitive   = true
  nullable    = false
}

variable "object_storage_domain" {
  type        = string
  description = "Domain of the storage provider without scheme and region; may include a port. The endpoint is <region>.<domain>."
  default     = "your-objectstorage.com"
  nullable    = false
}

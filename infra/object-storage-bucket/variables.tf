# The rules of all five stand in ../object-storage-inputs, and its page says why they stand apart.

variable "object_storage_region" {
  type        = string
  description = "Region of the bucket: fsn1, nbg1 or hel1."
  sensitive   = true
  nullable    = false
}

variable "object_storage_access_key" {
  type        = string
  description = "Access key that the storage provider's console issued: 16 or more visible ASCII characters."
  sensitive   = true
  nullable    = false
}

variable "object_storage_secret_key" {
  type        = string
  description = "Its secret half: 32 or more visible ASCII characters."
  sensitive   = true
  nullable    = false
}

variable "object_storage_bucket" {
  type        = string
  description = "Name of the bucket, by the naming rules of S3. Another name is another bucket, so a change is refused."
  sensitive   = true
  nullable    = false
}

variable "object_storage_domain" {
  type        = string
  description = "Domain of the storage provider, without scheme and region; a port may follow. The endpoint is <region>.<domain>."
  default     = "your-objectstorage.com"
  nullable    = false
}

# A failed validation prints the source of the value. For a variable of the root module that is a line of the .tfvars file,
# which may contain the secret key. Here it is the line of the calling module.

variable "object_storage_region" {
  type        = string
  description = "Region: fsn1, nbg1 or hel1."
  sensitive   = true
  nullable    = false

  validation {
    condition     = contains(["fsn1", "nbg1", "hel1"], var.object_storage_region)
    error_message = "object_storage_region must be fsn1, nbg1 or hel1, in lower case."
  }
}

variable "object_storage_access_key" {
  type        = string
  description = "Access key from the console of the storage provider."
  sensitive   = true
  nullable    = false

  validation {
    condition     = length(var.object_storage_access_key) >= 16
    error_message = "object_storage_access_key must have at least 16 characters."
  }

  validation {
    condition     = can(regex("^[!-~]*$", var.object_storage_access_key))
    error_message = "object_storage_access_key must consist of visible ASCII characters: no white space, no control character."
  }
}

variable "object_storage_secret_key" {
  type        = string
  description = "Secret key."
  sensitive   = true
  nullable    = false

  validation {
    condition     = length(var.object_storage_secret_key) >= 32
    error_message = "object_storage_secret_key must have at least 32 characters."
  }

  validation {
    condition     = can(regex("^[!-~]*$", var.object_storage_secret_key))
    error_message = "object_storage_secret_key must consist of visible ASCII characters: no white space, no control character."
  }
}

# docs.aws.amazon.com/AmazonS3/latest/userguide/bucketnamingrules.html, without dots: a wildcard certificate does not cover
# the host name of a bucket with a dot.
variable "object_storage_bucket" {
  type        = string
  description = "Name of the bucket."
  sensitive   = true
  nullable    = false

  validation {
    condition     = length(var.object_storage_bucket) >= 3 && length(var.object_storage_bucket) <= 63
    error_message = "object_storage_bucket must have 3 to 63 characters."
  }

  validation {
    condition     = can(regex("^[a-z0-9]([a-z0-9-]*[a-z0-9])?$", var.object_storage_bucket))
    error_message = "object_storage_bucket must consist of lower-case letters, digits and inner hyphens."
  }

  validation {
    condition     = !can(regex("^(xn--|sthree-|amzn-s3-demo-)", var.object_storage_bucket))
    error_message = "object_storage_bucket must not begin with xn--, sthree- or amzn-s3-demo-, which S3 reserves."
  }

  validation {
    condition     = !can(regex("(-s3alias|--ol-s3|\\.mrap|--x-s3|--table-s3)$", var.object_storage_bucket))
    error_message = "object_storage_bucket must not end with -s3alias, --ol-s3, .mrap, --x-s3 or --table-s3, which S3 reserves."
  }
}

variable "object_storage_domain" {
  type        = string
  description = "Domain of the storage provider without scheme and region; may include a port."
  nullable    = false

  validation {
    condition     = can(regex("^([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\\.)*[a-z]([a-z0-9-]{0,61}[a-z0-9])?(:[1-9][0-9]{0,4})?$", var.object_storage_domain))
    error_message = "object_storage_domain must be a host name in lower case, such as your-objectstorage.com, optionally with a port: no scheme, no path."
  }
}

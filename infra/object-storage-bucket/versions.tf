terraform {
  required_version = ">= 1.6.0"

  required_providers {
    minio = {
      source = "aminueza/minio"
      # Nothing newer than 3.5 is used: s3_compat_mode and skip_bucket_tagging would raise the floor.
      version = "~> 3.5"
    }
  }
}

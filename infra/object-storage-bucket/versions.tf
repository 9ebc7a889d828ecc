terraform {
  required_version = ">= 1.6.0"

  required_providers {
    minio = {
      source = "aminueza/minio"
      # 3.5 is sufficient; s3_compat_mode and skip_bucket_tagging would need a later version.
      version = "~> 3.5"
    }
  }
}

terraform {
  required_version = ">= 1.6.0"

  required_providers {
    minio = {
      source = "aminueza/minio"
      # Before 3.6.4, a failed lookup removes the bucket from the state. From 3.11.2 on, a private bucket is created with a
      # request for which Ceph and Hetzner do not send the only response that the provider accepts.
      version = ">= 3.6.4, < 3.11.2"
    }
  }
}

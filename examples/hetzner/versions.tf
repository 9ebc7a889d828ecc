terraform {
  # The bucket module requires the provider aminueza/minio, with a range of versions. .terraform.lock.hcl chooses one of them.
  required_version = ">= 1.6.0"
}

# Plans only: prevent_destroy would also keep a bucket that a test has applied.
mock_provider "minio" {}

variables {
  object_storage_region     = "fsn1"
  object_storage_access_key = "access-key-01234"
  object_storage_secret_key = "secret-key-0123456789-0123456789"
  object_storage_bucket     = "catalyst-acme-pool-test"
  object_storage_domain     = "storage.test"
}

run "bucket" {
  command = plan

  assert {
    condition     = minio_s3_bucket.backups.bucket == "catalyst-acme-pool-test"
    error_message = "The bucket does not have the given name."
  }

  assert {
    condition     = minio_s3_bucket.backups.acl == "private"
    error_message = "The bucket is not private."
  }

  assert {
    condition     = !minio_s3_bucket.backups.force_destroy && !minio_s3_bucket.backups.object_locking
    error_message = "The bucket can be destroyed with its objects, or locks them."
  }

  assert {
    condition     = output.endpoint == "https://fsn1.storage.test" && output.region == "fsn1" && output.bucket == "catalyst-acme-pool-test"
    error_message = "An output does not match the bucket."
  }
}

run "default_domain" {
  command = plan

  variables {
    object_storage_domain = null
  }

  assert {
    condition     = output.endpoint == "https://fsn1.your-objectstorage.com"
    error_message = "The default domain is wrong."
  }
}

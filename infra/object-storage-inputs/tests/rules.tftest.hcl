# Valid and invalid inputs. tests/infra checks the error messages.

variables {
  object_storage_region     = "fsn1"
  object_storage_access_key = "access-key-01234"
  object_storage_secret_key = "secret-key-0123456789-0123456789"
  object_storage_bucket     = "catalyst-acme-pool-test"
  object_storage_domain     = "storage.test"
}

run "first_invalid_value_of_each" {
  command = plan

  variables {
    object_storage_region     = "eu-central-1"
    object_storage_access_key = "access-key-0123"
    object_storage_secret_key = "secret-key-0123456789-012345678"
    object_storage_bucket     = "ab"
    object_storage_domain     = "https://storage.test"
  }

  expect_failures = [
    var.object_storage_region,
    var.object_storage_access_key,
    var.object_storage_secret_key,
    var.object_storage_bucket,
    var.object_storage_domain,
  ]
}

run "second_invalid_value_of_each" {
  command = plan

  variables {
    object_storage_region     = "FSN1"
    object_storage_access_key = "access key-01234"
    object_storage_secret_key = "secret-key-0123456789-0123456789\n"
    object_storage_bucket     = "Catalyst"
    object_storage_domain     = "storage.test/x"
  }

  expect_failures = [
    var.object_storage_region,
    var.object_storage_access_key,
    var.object_storage_secret_key,
    var.object_storage_bucket,
    var.object_storage_domain,
  ]
}

run "third_invalid_value_of_each" {
  command = plan

  variables {
    object_storage_region = "fsn1.evil.test/"
    object_storage_bucket = "catalyst.acme"
    object_storage_domain = "storage.test."
  }

  expect_failures = [var.object_storage_region, var.object_storage_bucket, var.object_storage_domain]
}

run "fourth_invalid_value_of_each" {
  command = plan

  variables {
    object_storage_bucket = "-catalyst"
    object_storage_domain = "user@storage.test"
  }

  expect_failures = [var.object_storage_bucket, var.object_storage_domain]
}

run "bucket_that_ends_with_a_hyphen" {
  command = plan

  variables {
    object_storage_bucket = "catalyst-"
  }

  expect_failures = [var.object_storage_bucket]
}

run "bucket_with_a_newline" {
  command = plan

  variables {
    object_storage_bucket = "catalyst\n"
  }

  expect_failures = [var.object_storage_bucket]
}

run "bucket_with_prefix_xn" {
  command = plan

  variables {
    object_storage_bucket = "xn--catalyst"
  }

  expect_failures = [var.object_storage_bucket]
}

run "bucket_with_prefix_sthree" {
  command = plan

  variables {
    object_storage_bucket = "sthree-catalyst"
  }

  expect_failures = [var.object_storage_bucket]
}

run "bucket_with_prefix_demo" {
  command = plan

  variables {
    object_storage_bucket = "amzn-s3-demo-catalyst"
  }

  expect_failures = [var.object_storage_bucket]
}

run "bucket_with_suffix_ol" {
  command = plan

  variables {
    object_storage_bucket = "catalyst--ol-s3"
  }

  expect_failures = [var.object_storage_bucket]
}

run "bucket_with_suffix_x" {
  command = plan

  variables {
    object_storage_bucket = "catalyst--x-s3"
  }

  expect_failures = [var.object_storage_bucket]
}

run "bucket_with_suffix_table" {
  command = plan

  variables {
    object_storage_bucket = "catalyst--table-s3"
  }

  expect_failures = [var.object_storage_bucket]
}

run "shortest_keys_and_longest_bucket" {
  command = plan

  variables {
    object_storage_access_key = "0123456789\\!\"#$~"
    object_storage_bucket     = join("", [for n in range(63) : "a"])
    object_storage_domain     = "localhost:65535"
  }

  assert {
    condition     = length(output.bucket) == 63 && output.server == "fsn1.localhost:65535"
    error_message = "A valid value was changed."
  }
}

run "shortest_bucket" {
  command = plan

  variables {
    object_storage_bucket = "0-b"
  }

  assert {
    condition     = output.bucket == "0-b"
    error_message = "A valid value was changed."
  }
}

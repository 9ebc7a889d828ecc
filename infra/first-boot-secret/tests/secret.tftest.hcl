# tests/infra renders the secret of random values.

variables {
  object_storage_provider   = "hetzner"
  object_storage_domain     = "storage.test"
  object_storage_region     = "fsn1"
  object_storage_access_key = "access-key-01234"
  object_storage_secret_key = "secret-key-0123456789-0123456789"
  object_storage_bucket     = "catalyst-acme-pool-test"
}

run "another_file" {
  variables {
    path = "/run/secrets.d/s3.yaml"
  }

  assert {
    condition     = yamldecode(output.cloud_config).write_files[0].path == "/run/secrets.d/s3.yaml"
    error_message = "cloud-init would write to another file."
  }
}

run "larger_than_user_data" {
  command = plan

  variables {
    object_storage_secret_key = join("", [for _ in range(1024) : "secret-key-0123456789-0123456789"])
  }

  expect_failures = [output.cloud_config]
}

run "invalid_provider_and_path" {
  command = plan

  variables {
    object_storage_provider = "Hetzner Cloud"
    path                    = "s3.yaml"
  }

  expect_failures = [var.object_storage_provider, var.path]
}

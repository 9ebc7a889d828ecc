variables {
  object_storage_provider   = "hetzner"
  object_storage_domain     = "storage.test"
  object_storage_region     = "fsn1"
  object_storage_access_key = "0x1234567890:#'\"\\"
  object_storage_secret_key = "$${a}%%{b}{{c}}!&*|>-?@`,[]~#:yes---"
  object_storage_bucket     = "catalyst-acme-pool-test"
}

run "secret" {
  assert {
    condition = yamldecode(output.manifest) == {
      apiVersion = "v1"
      kind       = "Secret"
      metadata   = { name = "hetzner-object-storage", namespace = "flux-system" }
      type       = "Opaque"
      stringData = {
        s3-endpoint   = "https://fsn1.storage.test"
        s3-region     = "fsn1"
        s3-bucket     = "catalyst-acme-pool-test"
        s3-access-key = var.object_storage_access_key
        s3-secret-key = var.object_storage_secret_key
      }
    }
    error_message = "The manifest does not match the inputs."
  }

  assert {
    condition = yamldecode(output.cloud_config) == {
      write_files = [{
        path        = "/var/lib/first-boot/hetzner-object-storage.yaml"
        owner       = "root:root"
        permissions = "0600"
        content     = output.manifest
      }]
    }
    error_message = "cloud-init would write another content."
  }

  assert {
    condition     = startswith(output.cloud_config, "#cloud-config\n")
    error_message = "cloud-init requires this first line."
  }
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

run "provider_that_is_not_a_label" {
  command = plan

  variables {
    object_storage_provider = "Hetzner Cloud"
  }

  expect_failures = [var.object_storage_provider]
}

run "relative_path" {
  command = plan

  variables {
    path = "s3.yaml"
  }

  expect_failures = [var.path]
}

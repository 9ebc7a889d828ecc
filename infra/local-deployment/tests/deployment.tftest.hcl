variables {
  deployment_id             = "0c6b9d5e-8f0b-4e8a-9a3f-1d2c3b4a5f60"
  org_name                  = "Acme"
  org_email                 = "ops@acme.example"
  sovereign_fqdn            = "acme.pool.test"
  region                    = "fsn1"
  ssh_public_key            = "ssh-ed25519 AAAA"
  provider_names            = ["hetzner"]
  object_storage_provider   = "hetzner"
  object_storage_domain     = "storage.test"
  object_storage_region     = "fsn1"
  object_storage_bucket     = "catalyst-acme-pool-test"
  object_storage_access_key = "access-key-01234"
  object_storage_secret_key = "secret-key-0123456789-0123456789"
}

run "address_of_a_name_is_stable" {
  assert {
    condition     = output.load_balancer_ip == "198.18.42.250"
    error_message = "The address of a name changed."
  }
}

run "another_name_without_object_storage" {
  variables {
    sovereign_fqdn            = "other.pool.test"
    provider_names            = []
    object_storage_region     = ""
    object_storage_bucket     = ""
    object_storage_access_key = ""
    object_storage_secret_key = ""
  }

  assert {
    condition     = output.details.object_storage_secret == null
    error_message = "A deployment without object storage must not have a secret."
  }

  assert {
    condition     = output.load_balancer_ip == "198.18.112.200"
    error_message = "Two names must have different addresses."
  }
}

run "empty_name" {
  command = plan

  variables {
    sovereign_fqdn = ""
  }

  expect_failures = [var.sovereign_fqdn]
}

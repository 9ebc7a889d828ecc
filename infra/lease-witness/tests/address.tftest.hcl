mock_provider "cloudflare" {}

variables {
  account_id     = "acc0acc0acc0acc0acc0acc0acc0acc0"
  script_file    = "README.md"
  token_policies = { region-a = { token = "sha256:0000000000000000000000000000000000000000000000000000000000000000", access = "write" } }
}

run "unknown_workers_dev_subdomain" {
  command = plan

  assert {
    condition     = cloudflare_workers_script_subdomain.witness.enabled && output.workers_dev_url == null && output.url == null
    error_message = "Without the subdomain of the account, the URL must be null."
  }
}

run "workers_dev" {
  command = plan

  variables {
    workers_dev_subdomain = "acme"
  }

  assert {
    condition     = output.url == "https://lease-witness.acme.workers.dev" && output.custom_domain_url == null
    error_message = "The URL must consist of script, subdomain and workers.dev."
  }

  assert {
    condition     = !cloudflare_workers_script_subdomain.witness.previews_enabled
    error_message = "A preview would write to the same leases."
  }
}

run "custom_domain_without_workers_dev" {
  command = plan

  variables {
    workers_dev           = false
    workers_dev_subdomain = "acme"
    custom_domain         = { hostname = "witness.example.com", zone_id = "20e020e020e020e020e020e020e020e0" }
  }

  assert {
    condition     = output.url == "https://witness.example.com" && output.workers_dev_url == null
    error_message = "The custom domain must be the only address."
  }

  assert {
    condition     = cloudflare_workers_script_subdomain.witness.enabled == false
    error_message = "workers.dev must be disabled, not unmanaged."
  }

  assert {
    condition     = cloudflare_workers_custom_domain.witness[0].service == "lease-witness"
    error_message = "The domain must point to the script."
  }
}

run "both" {
  command = plan

  variables {
    workers_dev_subdomain = "acme"
    custom_domain         = { hostname = "witness.example.com", zone_id = "20e020e020e020e020e020e020e020e0" }
  }

  assert {
    condition = (
      output.url == "https://witness.example.com"
      && output.custom_domain_url == "https://witness.example.com"
      && output.workers_dev_url == "https://lease-witness.acme.workers.dev"
    )
    error_message = "Both addresses must be outputs, the custom domain as url."
  }
}

# Invalid inputs. tests/infra checks the error messages, and invalid tokens.
mock_provider "cloudflare" {}

variables {
  account_id     = "acc0acc0acc0acc0acc0acc0acc0acc0"
  script_file    = "README.md"
  token_policies = { region-a = { token = "sha256:0000000000000000000000000000000000000000000000000000000000000000", access = "write" } }
}

run "first_invalid_value_of_each" {
  command = plan

  variables {
    account_id              = "my-account"
    script_name             = "Lease_Witness"
    namespace_title         = " "
    log_level               = "trace"
    max_wait_seconds        = 61
    max_requests_per_minute = 0.5
    request_limit           = { namespace_id = 1001, requests = 0.5 }
    token_policies          = {}
    token_policies_secret   = { store_id = "default", secret_name = "policies" }
    jurisdiction            = "de"
    location_hints          = { "eu/" = "fra" }
    workers_dev_subdomain   = "acme.workers.dev"
    custom_domain           = { hostname = "witness.example.com", zone_id = null }
  }

  expect_failures = [
    var.account_id,
    var.script_name,
    var.namespace_title,
    var.log_level,
    var.max_wait_seconds,
    var.max_requests_per_minute,
    var.request_limit,
    var.token_policies_secret,
    var.jurisdiction,
    var.location_hints,
    var.workers_dev_subdomain,
    var.custom_domain,
  ]
}

run "second_invalid_value_of_each" {
  command = plan

  variables {
    max_wait_seconds      = 0.5
    request_limit         = { namespace_id = 1001, requests = 100, period_seconds = 30 }
    token_policies        = {}
    token_policies_secret = { store_id = "5ec55ec55ec55ec55ec55ec55ec55ec5", secret_name = "" }
    location_hints        = { "eu/" = null }
    workers_dev_subdomain = "acc0acc0acc0acc0acc0acc0acc0acc0"
    custom_domain         = { hostname = null, zone_id = "20e020e020e020e020e020e020e020e0" }
  }

  expect_failures = [
    var.max_wait_seconds,
    var.request_limit,
    var.token_policies_secret,
    var.location_hints,
    var.workers_dev_subdomain,
    var.custom_domain,
  ]
}

run "third_invalid_value_of_each" {
  command = plan

  variables {
    request_limit  = { namespace_id = 0, requests = 100 }
    location_hints = { "eu,us" = "weur" }
    token_policies = { region-a = { token = "sha256:0000000000000000000000000000000000000000000000000000000000000000", access = "all" } }
    custom_domain  = { hostname = "witness.example.com/lease", zone_id = "20e020e020e020e020e020e020e020e0" }
  }

  expect_failures = [var.request_limit, var.location_hints, var.token_policies, var.custom_domain]
}

run "fourth_invalid_value_of_each" {
  command = plan

  variables {
    location_hints = { for n in range(400) : format("prefix-%05d/", n) => "weur" }
    custom_domain  = { hostname = "witness.example.com", zone_id = "example.com" }
  }

  expect_failures = [var.location_hints, var.custom_domain]
}

run "no_address" {
  command = plan

  variables {
    workers_dev = false
  }

  expect_failures = [cloudflare_workers_script.witness]
}

run "no_built_script" {
  command = plan

  variables {
    script_file = "tests/nowhere.js"
  }

  expect_failures = [cloudflare_workers_script.witness]
}

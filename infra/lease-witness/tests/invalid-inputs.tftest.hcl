# Invalid inputs. tests/infra checks the error messages.
mock_provider "cloudflare" {}

variables {
  account_id     = "acc0acc0acc0acc0acc0acc0acc0acc0"
  script_file    = "tests/script.txt"
  token_policies = { region-a = { token = "sha256:0000000000000000000000000000000000000000000000000000000000000000", access = "write" } }
}

run "malformed_account_id" {
  command = plan

  variables {
    account_id = "my-account"
  }

  expect_failures = [var.account_id]
}

run "script_name_that_is_not_a_label" {
  command = plan

  variables {
    script_name = "Lease_Witness"
  }

  expect_failures = [var.script_name]
}

run "empty_namespace_title" {
  command = plan

  variables {
    namespace_title = " "
  }

  expect_failures = [var.namespace_title]
}

run "unknown_log_level" {
  command = plan

  variables {
    log_level = "trace"
  }

  expect_failures = [var.log_level]
}

run "wait_of_more_than_a_minute" {
  command = plan

  variables {
    max_wait_seconds = 61
  }

  expect_failures = [var.max_wait_seconds]
}

run "wait_of_half_a_second" {
  command = plan

  variables {
    max_wait_seconds = 0.5
  }

  expect_failures = [var.max_wait_seconds]
}

run "half_a_request_per_minute" {
  command = plan

  variables {
    max_requests_per_minute = 0.5
  }

  expect_failures = [var.max_requests_per_minute]
}

run "limit_of_half_a_request" {
  command = plan

  variables {
    request_limit = { namespace_id = 1001, requests = 0.5 }
  }

  expect_failures = [var.request_limit]
}

run "limit_with_another_period" {
  command = plan

  variables {
    request_limit = { namespace_id = 1001, requests = 100, period_seconds = 30 }
  }

  expect_failures = [var.request_limit]
}

run "limit_without_a_number" {
  command = plan

  variables {
    request_limit = { namespace_id = 0, requests = 100 }
  }

  expect_failures = [var.request_limit]
}

run "store_with_a_name_as_its_id" {
  command = plan

  variables {
    token_policies        = {}
    token_policies_secret = { store_id = "default", secret_name = "policies" }
  }

  expect_failures = [var.token_policies_secret]
}

run "secret_without_a_name" {
  command = plan

  variables {
    token_policies        = {}
    token_policies_secret = { store_id = "5ec55ec55ec55ec55ec55ec55ec55ec5", secret_name = "" }
  }

  expect_failures = [var.token_policies_secret]
}

run "unknown_jurisdiction" {
  command = plan

  variables {
    jurisdiction = "de"
  }

  expect_failures = [var.jurisdiction]
}

run "unknown_location_hint" {
  command = plan

  variables {
    location_hints = { "eu/" = "fra" }
  }

  expect_failures = [var.location_hints]
}

run "no_location_hint" {
  command = plan

  variables {
    location_hints = { "eu/" = null }
  }

  expect_failures = [var.location_hints]
}

run "location_hint_for_a_prefix_with_a_comma" {
  command = plan

  variables {
    location_hints = { "eu,us" = "weur" }
  }

  expect_failures = [var.location_hints]
}

run "location_hints_that_are_too_long" {
  command = plan

  variables {
    location_hints = { for n in range(400) : format("prefix-%05d/", n) => "weur" }
  }

  expect_failures = [var.location_hints]
}

run "policy_with_a_token" {
  command = plan

  variables {
    token_policies = { region-a = { token = "0000000000000000000000000000000000000000000000000000000000000000", access = "write" } }
  }

  expect_failures = [cloudflare_workers_script.witness]
}

run "policy_with_an_unknown_access" {
  command = plan

  variables {
    token_policies = { region-a = { token = "sha256:0000000000000000000000000000000000000000000000000000000000000000", access = "all" } }
  }

  expect_failures = [var.token_policies]
}

run "subdomain_with_a_dot" {
  command = plan

  variables {
    workers_dev_subdomain = "acme.workers.dev"
  }

  expect_failures = [var.workers_dev_subdomain]
}

run "subdomain_that_is_the_account_id" {
  command = plan

  variables {
    workers_dev_subdomain = "acc0acc0acc0acc0acc0acc0acc0acc0"
  }

  expect_failures = [var.workers_dev_subdomain]
}

run "custom_domain_without_its_zone" {
  command = plan

  variables {
    custom_domain = { hostname = "witness.example.com", zone_id = null }
  }

  expect_failures = [var.custom_domain]
}

run "custom_domain_without_its_host_name" {
  command = plan

  variables {
    custom_domain = { hostname = null, zone_id = "20e020e020e020e020e020e020e020e0" }
  }

  expect_failures = [var.custom_domain]
}

run "custom_domain_with_a_path" {
  command = plan

  variables {
    custom_domain = { hostname = "witness.example.com/lease", zone_id = "20e020e020e020e020e020e020e020e0" }
  }

  expect_failures = [var.custom_domain]
}

run "custom_domain_with_a_zone_name_as_id" {
  command = plan

  variables {
    custom_domain = { hostname = "witness.example.com", zone_id = "example.com" }
  }

  expect_failures = [var.custom_domain]
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

run "no_token" {
  command = plan

  variables {
    token_policies = {}
  }

  expect_failures = [cloudflare_workers_script.witness]
}

run "short_token" {
  command = plan

  variables {
    bearer_tokens = ["first-token-0123456789-0123456789", "31-characters-0123456789-012345"]
  }

  expect_failures = [cloudflare_workers_script.witness]
}

run "token_with_a_comma" {
  command = plan

  variables {
    bearer_tokens = ["first-token-0123456789,0123456789-01"]
  }

  expect_failures = [cloudflare_workers_script.witness]
}

run "token_with_a_space" {
  command = plan

  variables {
    bearer_tokens = ["first-token-0123456789 0123456789-01"]
  }

  expect_failures = [cloudflare_workers_script.witness]
}

run "token_with_a_newline" {
  command = plan

  variables {
    bearer_tokens = ["first-token-0123456789-0123456789\n"]
  }

  expect_failures = [cloudflare_workers_script.witness]
}

run "token_with_a_control_character" {
  command = plan

  variables {
    bearer_tokens = ["first-token-0123456789-\u00070123456789"]
  }

  expect_failures = [cloudflare_workers_script.witness]
}

run "tokens_that_are_too_long" {
  command = plan

  variables {
    bearer_tokens = [for n in range(200) : format("first-token-0123456789-%010d", n)]
  }

  expect_failures = [cloudflare_workers_script.witness]
}

# No request reaches Cloudflare: the provider is mocked from its schema.
mock_provider "cloudflare" {}

variables {
  account_id     = "acc0acc0acc0acc0acc0acc0acc0acc0"
  script_file    = "README.md"
  token_policies = { region-a = { token = "sha256:0000000000000000000000000000000000000000000000000000000000000000", access = "write" } }
}

run "first_apply_sends_the_migration" {
  command = plan

  assert {
    condition     = cloudflare_workers_script.witness.migrations.new_tag == "v1"
    error_message = "The first upload must contain the migration."
  }

  assert {
    condition     = tolist(cloudflare_workers_script.witness.migrations.new_sqlite_classes) == tolist(["LeaseObject"])
    error_message = "The class must have SQLite storage."
  }
}

run "bindings" {
  command = plan

  assert {
    condition = { for binding in cloudflare_workers_script.witness.bindings : binding.name => binding.type } == {
      OPENOVA_LEASES = "kv_namespace"
      LEASES         = "durable_object_namespace"
      TOKEN_POLICIES = "secret_text"
      LOG_LEVEL      = "plain_text"
    }
    error_message = "By default, the witness must have exactly these four bindings."
  }

  assert {
    condition = jsondecode(one([for binding in cloudflare_workers_script.witness.bindings : binding.text if binding.name == "TOKEN_POLICIES"])) == [
      { name = "region-a", token = "sha256:0000000000000000000000000000000000000000000000000000000000000000", access = "write" }
    ]
    error_message = "The policies must be JSON without the fields that are not set."
  }

  assert {
    condition     = one([for binding in cloudflare_workers_script.witness.bindings : binding.class_name if binding.name == "LEASES"]) == "LeaseObject"
    error_message = "The binding must use the class of the migration."
  }
}

run "bearer_tokens" {
  command = plan

  variables {
    token_policies = {}
    bearer_tokens  = ["other-token-0123456789-0123456789", "first-token-0123456789-0123456789"]
  }

  assert {
    condition     = one([for binding in cloudflare_workers_script.witness.bindings : binding.text if binding.name == "BEARER_TOKENS_CSV"]) == "first-token-0123456789-0123456789,other-token-0123456789-0123456789"
    error_message = "The tokens must be one comma-separated string."
  }
}

run "every_log_line_is_kept" {
  command = plan

  assert {
    condition     = cloudflare_workers_script.witness.observability.head_sampling_rate == 1 && cloudflare_workers_script.witness.observability.logs.head_sampling_rate == 1
    error_message = "The sampling rates must be explicit: otherwise each plan removes the ones that Cloudflare reports."
  }
}

run "only_the_witness_writes_request_logs" {
  command = plan

  assert {
    condition     = cloudflare_workers_script.witness.observability.logs.enabled && !cloudflare_workers_script.witness.observability.logs.invocation_logs
    error_message = "Only the witness must log requests."
  }
}

run "changed_file_causes_a_change" {
  command = plan

  assert {
    condition     = cloudflare_workers_script.witness.content_sha256 == filesha256("README.md")
    error_message = "A changed file must cause a change."
  }
}

# No request reaches Cloudflare: the provider is mocked from its schema.
mock_provider "cloudflare" {}

variables {
  account_id            = "acc0acc0acc0acc0acc0acc0acc0acc0"
  script_file           = "tests/script.txt"
  bearer_tokens         = ["first-token-0123456789-0123456789", "other-token-0123456789-0123456789"]
  applied_migration_tag = "v1"
}

run "first_apply_sends_the_migration_and_names_the_next_step" {
  command = plan

  variables {
    applied_migration_tag = null
  }

  assert {
    condition     = cloudflare_workers_script.witness.migrations.new_tag == "v1"
    error_message = "The first upload must contain the migration."
  }

  assert {
    condition     = tolist(cloudflare_workers_script.witness.migrations.new_sqlite_classes) == tolist(["LeaseObject"])
    error_message = "The class must have SQLite storage."
  }

  expect_failures = [check.migration_is_recorded]
}

run "later_applies_send_no_migration" {
  command = plan

  assert {
    condition     = cloudflare_workers_script.witness.migrations == null
    error_message = "An applied migration must not be sent again."
  }
}

run "bindings" {
  command = plan

  assert {
    condition = { for binding in cloudflare_workers_script.witness.bindings : binding.name => binding.type } == {
      OPENOVA_LEASES    = "kv_namespace"
      LEASES            = "durable_object_namespace"
      BEARER_TOKENS_CSV = "secret_text"
      LOG_LEVEL         = "plain_text"
    }
    error_message = "The witness must have exactly these four bindings."
  }

  assert {
    condition     = one([for binding in cloudflare_workers_script.witness.bindings : binding.text if binding.name == "BEARER_TOKENS_CSV"]) == join(",", var.bearer_tokens)
    error_message = "The tokens must be one comma-separated string."
  }

  assert {
    condition     = one([for binding in cloudflare_workers_script.witness.bindings : binding.class_name if binding.name == "LEASES"]) == "LeaseObject"
    error_message = "The binding must use the class of the migration."
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
    condition     = cloudflare_workers_script.witness.content_sha256 == filesha256("tests/script.txt")
    error_message = "A changed file must cause a change."
  }
}

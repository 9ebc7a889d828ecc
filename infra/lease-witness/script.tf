locals {
  # Not variables: the code is tested with these values. They equal those of wrangler.toml.
  compatibility_date  = "2026-11-01"
  compatibility_flags = ["enable_request_signal"]
  lease_class         = "LeaseObject"
  migration_tag       = "v1"

  script_file = coalesce(var.script_file, "${path.module}/../../apps/lease-witness/dist/index.js")
}

resource "cloudflare_workers_script" "witness" {
  account_id  = var.account_id
  script_name = var.script_name

  main_module    = "index.js"
  content_file   = local.script_file
  content_sha256 = filesha256(local.script_file)

  compatibility_date  = local.compatibility_date
  compatibility_flags = local.compatibility_flags

  bindings = [
    {
      name         = "OPENOVA_LEASES"
      type         = "kv_namespace"
      namespace_id = cloudflare_workers_kv_namespace.leases.id
    },
    {
      name       = "LEASES"
      type       = "durable_object_namespace"
      class_name = local.lease_class
    },
    {
      name = "BEARER_TOKENS_CSV"
      type = "secret_text"
      text = join(",", var.bearer_tokens)
    },
    {
      name = "LOG_LEVEL"
      type = "plain_text"
      text = var.log_level
    },
  ]

  # The provider sends this with every upload, and Cloudflare accepts a migration once: an applied one must be removed here.
  migrations = var.applied_migration_tag == local.migration_tag ? null : {
    new_tag            = local.migration_tag
    new_sqlite_classes = [local.lease_class]
  }

  observability = {
    enabled = true
    logs = {
      enabled = true
      # The witness logs each request; invocation logs would duplicate that, including the path.
      invocation_logs = false
    }
  }

  lifecycle {
    # Cloudflare deletes the Durable Objects with their script: every lease and every generation.
    prevent_destroy = true

    precondition {
      condition     = length(var.bearer_tokens) > 0
      error_message = "bearer_tokens is empty: the witness would reject all requests. Add a token."
    }

    precondition {
      condition     = alltrue([for token in var.bearer_tokens : try(length(token) >= 32, false)])
      error_message = "Each of bearer_tokens must have at least 32 characters: use openssl rand -hex 32."
    }

    # The witness splits the list at commas and trims; a header value is visible ASCII.
    precondition {
      condition     = alltrue([for token in var.bearer_tokens : can(regex("^[!-+\\--~]*$", token))])
      error_message = "Each of bearer_tokens must consist of visible ASCII characters without commas: no white space, no control character."
    }

    precondition {
      condition     = try(length(join(",", var.bearer_tokens)) <= 5120, true)
      error_message = "bearer_tokens are too long: with commas, at most 5120 characters, the limit of a Worker variable."
    }

    precondition {
      condition     = fileexists(local.script_file)
      error_message = "No built script at ${local.script_file}: run pnpm --filter lease-witness build, or set script_file."
    }

    precondition {
      condition     = var.workers_dev || var.custom_domain != null
      error_message = "The witness would have no address: leave workers_dev true, or set custom_domain, or both."
    }
  }
}

check "migration_is_recorded" {
  assert {
    condition     = var.applied_migration_tag == local.migration_tag
    error_message = "This configuration sends migration ${local.migration_tag}, which Cloudflare accepts once. After the apply that creates the script, set applied_migration_tag = \"${local.migration_tag}\"; while it is null, Cloudflare rejects every later change of the script with 412."
  }
}

locals {
  # Not variables: the code is written and tested against these, and wrangler.toml says the same.
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

  # The provider sends this with every upload, and Cloudflare takes a migration once: what is applied must be gone from here.
  migrations = var.applied_migration_tag == local.migration_tag ? null : {
    new_tag            = local.migration_tag
    new_sqlite_classes = [local.lease_class]
  }

  observability = {
    enabled = true
    logs = {
      enabled = true
      # The witness prints one line a request itself; these would say it again, with the path once more.
      invocation_logs = false
    }
  }

  lifecycle {
    # Cloudflare deletes the Durable Objects with their script: every lease and every generation.
    prevent_destroy = true

    precondition {
      condition     = length(var.bearer_tokens) > 0
      error_message = "bearer_tokens is empty: a witness without a token lets nobody in."
    }

    precondition {
      condition     = alltrue([for token in var.bearer_tokens : try(length(token) >= 32, false)])
      error_message = "Each of bearer_tokens has at least 32 characters: openssl rand -hex 32 makes a good one."
    }

    # The witness splits its list at commas and trims; a header carries visible ASCII only.
    precondition {
      condition     = alltrue([for token in var.bearer_tokens : can(regex("^[!-+\\--~]*$", token))])
      error_message = "Each of bearer_tokens is made of visible ASCII characters without a comma: no white space, no control character."
    }

    precondition {
      condition     = try(length(join(",", var.bearer_tokens)) <= 5120, true)
      error_message = "bearer_tokens do not fit: together, commas included, they may have 5120 characters, the limit of one Worker variable."
    }

    precondition {
      condition     = fileexists(local.script_file)
      error_message = "There is no built script at ${local.script_file}: run pnpm --filter lease-witness build, or set script_file."
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
    error_message = "This configuration sends migration ${local.migration_tag}, which Cloudflare takes once. After the apply that creates the script set applied_migration_tag = \"${local.migration_tag}\"; as long as it is null, every later change of the script is refused with 412."
  }
}

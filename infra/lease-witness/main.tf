terraform {
  required_version = ">= 1.6.0"

  required_providers {
    cloudflare = {
      source = "cloudflare/cloudflare"
      # Before 5.19, each plan replaces a custom domain, because the API sets an attribute that the configuration does not.
      version = "~> 5.19"
    }
  }
}

resource "cloudflare_workers_kv_namespace" "leases" {
  account_id = var.account_id
  title      = var.namespace_title

  lifecycle {
    # New Durable Objects adopt leases and generations from this namespace.
    prevent_destroy = true
  }
}

locals {
  # Not variables: the code is tested with these values. They equal those of wrangler.toml.
  compatibility_date  = "2026-05-01"
  compatibility_flags = ["enable_request_signal"]
  lease_class         = "LeaseObject"
  migration_tag       = "v1"

  script_file = coalesce(var.script_file, "${path.module}/../../apps/lease-witness/dist/index.js")

  # The last migration that Cloudflare has applied to the script. Null: the script does not exist, or has no Durable Objects.
  applied_migration_tag = one([
    for script in data.cloudflare_workers_scripts.account.result : script.migration_tag if script.id == var.script_name
  ])

  secrets = {
    for name, text in {
      BEARER_TOKENS_CSV = local.has_bearer_tokens ? join(",", var.bearer_tokens) : null
      TOKEN_POLICIES    = length(var.token_policies) > 0 ? local.token_policies : null
    } : name => text if nonsensitive(text != null)
  }

  # A setting that is null keeps the default of the witness.
  settings = {
    for name, text in {
      DRAIN                   = var.drain ? "true" : null
      JURISDICTION            = var.jurisdiction
      LOCATION_HINTS          = length(var.location_hints) > 0 ? join(",", [for prefix, hint in var.location_hints : "${prefix}=${hint}"]) : null
      LOG_LEVEL               = var.log_level
      MAX_REQUESTS_PER_MINUTE = var.max_requests_per_minute == null ? null : tostring(var.max_requests_per_minute)
      MAX_WAIT_SECONDS        = var.max_wait_seconds == null ? null : tostring(var.max_wait_seconds)
    } : name => text if text != null
  }
}

data "cloudflare_workers_scripts" "account" {
  account_id = var.account_id
}

# The jurisdiction with which the first objects were created. Objects that are older than this record have none. For objects
# that something else created with a jurisdiction, the record is imported, with the jurisdiction as its id.
resource "terraform_data" "jurisdiction" {
  input = local.applied_migration_tag == null ? var.jurisdiction : null

  lifecycle {
    ignore_changes = [input]
    # A new record would accept another jurisdiction.
    prevent_destroy = true
  }
}

locals {
  first_jurisdiction = (
    contains(["eu", "us", "fedramp", "fedramp-high"], terraform_data.jurisdiction.id)
    ? terraform_data.jurisdiction.id
    : terraform_data.jurisdiction.output
  )
}

resource "cloudflare_workers_script" "witness" {
  account_id  = var.account_id
  script_name = var.script_name

  main_module    = "index.js"
  content_file   = local.script_file
  content_sha256 = filesha256(local.script_file)

  compatibility_date  = local.compatibility_date
  compatibility_flags = local.compatibility_flags

  bindings = concat(
    [
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
    ],
    [for name, text in local.secrets : { name = name, type = "secret_text", text = text }],
    [
      for secret in var.token_policies_secret[*] : {
        name        = "TOKEN_POLICIES"
        type        = "secrets_store_secret"
        store_id    = secret.store_id
        secret_name = secret.secret_name
      }
    ],
    [
      for limit in var.request_limit[*] : {
        name         = "REQUEST_LIMIT"
        type         = "ratelimit"
        namespace_id = tostring(limit.namespace_id)
        simple       = { limit = limit.requests, period = limit.period_seconds }
      }
    ],
    [for dataset in var.metrics_dataset[*] : { name = "METRICS", type = "analytics_engine", dataset = dataset }],
    [for name, text in local.settings : { name = name, type = "plain_text", text = text }],
  )

  # The provider sends this with every upload, and Cloudflare accepts a migration once: an applied one must be null here.
  migrations = local.applied_migration_tag == local.migration_tag ? null : {
    new_tag            = local.migration_tag
    new_sqlite_classes = [local.lease_class]
  }

  # All values are explicit: Cloudflare reports those that are not set with its defaults, which every later plan would remove.
  observability = {
    enabled            = true
    head_sampling_rate = 1
    logs = {
      enabled            = true
      head_sampling_rate = 1
      # The witness logs each request; invocation logs would duplicate that, including the path.
      invocation_logs = false
      persist         = true
    }
    traces = {
      enabled            = false
      head_sampling_rate = 1
      persist            = true
    }
  }

  lifecycle {
    # Cloudflare deletes the Durable Objects with their script: every lease and every generation.
    prevent_destroy = true

    precondition {
      condition     = length(local.token_errors) == 0
      error_message = join("\n", local.token_errors)
    }

    precondition {
      condition     = fileexists(local.script_file)
      error_message = "No built script at ${local.script_file}: run npx -y pnpm@12 --filter lease-witness build, or set script_file."
    }

    precondition {
      condition     = var.workers_dev || var.custom_domain != null
      error_message = "The witness would have no address: leave workers_dev true, or set custom_domain, or both."
    }

    precondition {
      condition     = contains(["", local.migration_tag], local.applied_migration_tag == null ? "" : local.applied_migration_tag)
      error_message = "The script ${var.script_name} has a migration that this version of the module does not have: use the version that applied it."
    }

    precondition {
      condition     = var.jurisdiction == local.first_jurisdiction
      error_message = "jurisdiction cannot be changed: it is part of the id of every Durable Object, so every slot would start with a new, empty object. Set it to ${local.first_jurisdiction == null ? "null" : jsonencode(local.first_jurisdiction)}, or create a second witness with another script_name."
    }
  }
}

# Always managed, so that a plan shows whether the address is enabled.
resource "cloudflare_workers_script_subdomain" "witness" {
  account_id  = var.account_id
  script_name = cloudflare_workers_script.witness.script_name
  enabled     = var.workers_dev
  # Previews of other versions would write to the same leases.
  previews_enabled = false
}

resource "cloudflare_workers_custom_domain" "witness" {
  count = var.custom_domain == null ? 0 : 1

  account_id = var.account_id
  zone_id    = var.custom_domain.zone_id
  hostname   = var.custom_domain.hostname
  service    = cloudflare_workers_script.witness.script_name
}

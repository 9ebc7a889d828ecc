variable "account_id" {
  type        = string
  description = "Cloudflare account of the witness."
  nullable    = false

  validation {
    condition     = can(regex("^[0-9a-f]{32}$", var.account_id))
    error_message = "account_id must be 32 hexadecimal digits; see the home page of the account in the dashboard."
  }
}

variable "script_name" {
  type        = string
  description = "Name of the Worker, and the first label of its workers.dev address. A new name creates a new Worker without leases."
  default     = "lease-witness"
  nullable    = false

  validation {
    condition     = can(regex("^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$", var.script_name))
    error_message = "script_name must be a DNS label: lower-case letters, digits and inner hyphens, 63 at most."
  }
}

variable "namespace_title" {
  type        = string
  description = "Title of the KV namespace with the copies of the leases."
  default     = "lease-witness"
  nullable    = false

  validation {
    condition     = trimspace(var.namespace_title) != ""
    error_message = "namespace_title must not be empty."
  }
}

variable "script_file" {
  type        = string
  description = "Path of the built script. Null: apps/lease-witness/dist/index.js of this repository."
  default     = null
}

variable "log_level" {
  type        = string
  description = "Log level: error, info or debug."
  default     = "info"
  nullable    = false

  validation {
    condition     = contains(["error", "info", "debug"], var.log_level)
    error_message = "log_level must be error, info or debug."
  }
}

# A set, because the order of tokens has no meaning and must not cause a change. The rules are preconditions of the script:
# a failed validation would print the lines of the .tfvars file with the value.
variable "bearer_tokens" {
  type        = set(string)
  description = "Bearer tokens of the clients; two during a rotation. The state contains them in plain text."
  sensitive   = true
  nullable    = false
}

variable "applied_migration_tag" {
  type        = string
  description = "Migration that Cloudflare has applied to the script: null for the first apply, then \"v1\"."
  default     = null

  validation {
    condition     = var.applied_migration_tag == null ? true : var.applied_migration_tag == "v1"
    error_message = "applied_migration_tag must be null (the script does not exist yet) or \"v1\", the only migration."
  }
}

variable "workers_dev" {
  type        = bool
  description = "Whether the workers.dev address is enabled."
  default     = true
  nullable    = false
}

variable "workers_dev_subdomain" {
  type        = string
  description = "The workers.dev subdomain of the account: acme in lease-witness.acme.workers.dev. Null: the URL is unknown."
  default     = null

  validation {
    condition     = var.workers_dev_subdomain == null ? true : can(regex("^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$", var.workers_dev_subdomain))
    error_message = "workers_dev_subdomain must be the label before .workers.dev: no dot, no scheme."
  }

  validation {
    condition     = var.workers_dev_subdomain == null ? true : !can(regex("^[0-9a-f]{32}$", var.workers_dev_subdomain))
    error_message = "workers_dev_subdomain looks like an account id; the subdomain is the name chosen under Workers & Pages."
  }
}

variable "custom_domain" {
  type = object({
    hostname = string
    zone_id  = string
  })
  description = "Host name of the witness and its zone, in the same account. Null: no custom domain."
  default     = null

  validation {
    condition     = var.custom_domain == null ? true : (var.custom_domain.hostname == null) == (var.custom_domain.zone_id == null)
    error_message = "custom_domain needs both hostname and zone_id."
  }

  validation {
    condition     = var.custom_domain == null ? true : can(regex("^([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\\.)+[a-z][a-z0-9-]*[a-z0-9]$", var.custom_domain.hostname))
    error_message = "custom_domain.hostname must be a full host name in lower case, such as witness.example.com: no scheme, no path."
  }

  validation {
    condition     = var.custom_domain == null ? true : can(regex("^[0-9a-f]{32}$", var.custom_domain.zone_id))
    error_message = "custom_domain.zone_id must be 32 hexadecimal digits; see the overview of the zone in the dashboard."
  }
}

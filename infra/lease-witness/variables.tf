variable "account_id" {
  type        = string
  description = "Cloudflare account that the witness runs in."
  nullable    = false

  validation {
    condition     = can(regex("^[0-9a-f]{32}$", var.account_id))
    error_message = "account_id is 32 hexadecimal digits: the dashboard shows it on the account's home page."
  }
}

variable "script_name" {
  type        = string
  description = "Name of the Worker, and the first label of its workers.dev address. A new name is a new Worker with no lease in it."
  default     = "lease-witness"
  nullable    = false

  validation {
    condition     = can(regex("^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$", var.script_name))
    error_message = "script_name is a DNS label: lower-case letters, digits and inner hyphens, 63 at most."
  }
}

variable "namespace_title" {
  type        = string
  description = "Title of the KV namespace that mirrors the leases."
  default     = "lease-witness"
  nullable    = false

  validation {
    condition     = trimspace(var.namespace_title) != ""
    error_message = "namespace_title must not be empty."
  }
}

variable "script_file" {
  type        = string
  description = "The built script. Null: the one that this repository builds, apps/lease-witness/dist/index.js."
  default     = null
}

variable "log_level" {
  type        = string
  description = "How much the witness logs: error, info or debug."
  default     = "info"
  nullable    = false

  validation {
    condition     = contains(["error", "info", "debug"], var.log_level)
    error_message = "log_level is error, info or debug."
  }
}

# A set: the order of an allow-list means nothing, so moving a token in it must not be a change. Its rules stand with the
# script as preconditions: for a broken validation Terraform quotes the lines of the .tfvars file that the value came from.
variable "bearer_tokens" {
  type        = set(string)
  description = "Tokens that clients may present; two of them while one is being rotated out. They end in the state in clear."
  sensitive   = true
  nullable    = false
}

variable "applied_migration_tag" {
  type        = string
  description = "Migration that Cloudflare has applied to the script: null for the very first apply, \"v1\" ever after."
  default     = null

  validation {
    condition     = var.applied_migration_tag == null ? true : var.applied_migration_tag == "v1"
    error_message = "applied_migration_tag is null (the script does not exist yet) or \"v1\", the only migration there is."
  }
}

variable "workers_dev" {
  type        = bool
  description = "Whether the witness answers at its workers.dev address."
  default     = true
  nullable    = false
}

variable "workers_dev_subdomain" {
  type        = string
  description = "The account's workers.dev subdomain: acme in lease-witness.acme.workers.dev. Null: unknown, and so is the URL."
  default     = null

  validation {
    condition     = var.workers_dev_subdomain == null ? true : can(regex("^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$", var.workers_dev_subdomain))
    error_message = "workers_dev_subdomain is the one label before .workers.dev: no dot, no scheme."
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
  description = "Host name of the witness, and the zone of the same account that it lies in. Null: none."
  default     = null

  validation {
    condition     = var.custom_domain == null ? true : (var.custom_domain.hostname == null) == (var.custom_domain.zone_id == null)
    error_message = "custom_domain needs both hostname and zone_id."
  }

  validation {
    condition     = var.custom_domain == null ? true : can(regex("^([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\\.)+[a-z][a-z0-9-]*[a-z0-9]$", var.custom_domain.hostname))
    error_message = "custom_domain.hostname is a full host name in lower case, such as witness.example.com: no scheme, no path."
  }

  validation {
    condition     = var.custom_domain == null ? true : can(regex("^[0-9a-f]{32}$", var.custom_domain.zone_id))
    error_message = "custom_domain.zone_id is 32 hexadecimal digits: the dashboard shows it on the zone's overview."
  }
}

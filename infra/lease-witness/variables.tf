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

# A map, because the order of policies has no meaning and must not cause a change, and names are unique.
variable "token_policies" {
  type = map(object({
    token                   = string
    access                  = string
    slots                   = optional(set(string))
    holders                 = optional(set(string))
    expires_at              = optional(string)
    max_requests_per_minute = optional(number)
  }))
  description = "What the bearer of each token may do, by the name of the policy. The token is given as sha256: and its SHA-256, so that the state contains no token."
  default     = {}
  nullable    = false

  validation {
    condition     = alltrue([for name in keys(var.token_policies) : can(regex("^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$", name))])
    error_message = "The names of token_policies must be 1 to 63 letters, digits, dots, underscores and hyphens, and start with a letter or digit."
  }

  validation {
    condition     = alltrue([for policy in var.token_policies : try(contains(["read", "write"], policy.access), false)])
    error_message = "The access of each of token_policies must be \"read\" or \"write\"."
  }

  validation {
    condition = alltrue([
      for policy in var.token_policies :
      policy.slots == null ? true : length(policy.slots) > 0 && alltrue([for prefix in policy.slots : try(length(prefix) > 0 && length(prefix) <= 506, false)])
    ])
    error_message = "The slots of token_policies must be prefixes of 1 to 506 characters. Omit slots for all slots."
  }

  validation {
    condition = alltrue([
      for policy in var.token_policies :
      policy.holders == null ? true : length(policy.holders) > 0 && alltrue([for holder in policy.holders : can(regex("^[!-~]([ -~]{0,252}[!-~])?$", holder))])
    ])
    error_message = "The holders of token_policies must be names of holders, or prefixes followed by *. Omit holders for all holders."
  }

  validation {
    condition     = alltrue([for policy in var.token_policies : policy.expires_at == null ? true : can(timecmp(policy.expires_at, policy.expires_at))])
    error_message = "The expires_at of token_policies must be a time with an offset, such as 2027-01-31T00:00:00Z. Omit it for a token that does not expire."
  }

  validation {
    condition = alltrue([
      for policy in var.token_policies :
      policy.max_requests_per_minute == null ? true : policy.max_requests_per_minute >= 1 && policy.max_requests_per_minute <= 10000000 && floor(policy.max_requests_per_minute) == policy.max_requests_per_minute
    ])
    error_message = "The max_requests_per_minute of token_policies must be a whole number from 1 to 10000000."
  }
}

variable "token_policies_secret" {
  type = object({
    store_id    = string
    secret_name = string
  })
  description = "The secret of a Secrets Store that contains the policies as JSON, instead of token_policies: its value changes without an apply, so a rotation restarts nothing. The secret must exist, with the scope workers."
  default     = null

  validation {
    condition     = var.token_policies_secret == null ? true : can(regex("^[0-9a-f]{32}$", var.token_policies_secret.store_id))
    error_message = "token_policies_secret.store_id must be 32 hexadecimal digits; see Secrets Store in the dashboard."
  }

  validation {
    condition     = var.token_policies_secret == null ? true : can(regex("^[^\\s/]+$", var.token_policies_secret.secret_name))
    error_message = "token_policies_secret.secret_name must be the name of a secret: no white space, no slash."
  }
}

# A set, because the order of tokens has no meaning and must not cause a change.
variable "bearer_tokens" {
  type        = set(string)
  description = "Tokens with full power. Warning: the state contains them in plain text. Prefer token_policies."
  default     = []
  sensitive   = true
  nullable    = false
}

variable "max_requests_per_minute" {
  type        = number
  description = "Requests per minute of one token in one isolate, unless its policy has its own limit. 0: no limit. Null: the default of the witness, 120000."
  default     = null

  validation {
    condition     = var.max_requests_per_minute == null ? true : var.max_requests_per_minute >= 0 && var.max_requests_per_minute <= 10000000 && floor(var.max_requests_per_minute) == var.max_requests_per_minute
    error_message = "max_requests_per_minute must be a whole number from 0 (no limit) to 10000000."
  }
}

variable "request_limit" {
  type = object({
    namespace_id   = number
    requests       = number
    period_seconds = optional(number, 60)
  })
  description = "A request limit of each token in one location of Cloudflare, counted by its rate limiting. namespace_id is a number that no other limit of the account has. Null: only the limits of the isolates."
  default     = null

  validation {
    condition     = var.request_limit == null ? true : try(var.request_limit.namespace_id >= 1 && floor(var.request_limit.namespace_id) == var.request_limit.namespace_id, false)
    error_message = "request_limit.namespace_id must be a whole number from 1."
  }

  validation {
    condition     = var.request_limit == null ? true : try(var.request_limit.requests >= 1 && floor(var.request_limit.requests) == var.request_limit.requests, false)
    error_message = "request_limit.requests must be a whole number from 1."
  }

  validation {
    condition     = var.request_limit == null ? true : try(contains([10, 60], var.request_limit.period_seconds), false)
    error_message = "request_limit.period_seconds must be 10 or 60: Cloudflare counts in no other period."
  }
}

variable "metrics_dataset" {
  type        = string
  description = "A dataset of Workers Analytics Engine that gets a data point for each request. Cloudflare creates it. Null: none."
  default     = null

  validation {
    condition     = var.metrics_dataset == null ? true : can(regex("^[A-Za-z_][A-Za-z0-9_]{0,62}$", var.metrics_dataset))
    error_message = "metrics_dataset must be letters, digits and underscores, because it is the name of a table."
  }
}

variable "max_wait_seconds" {
  type        = number
  description = "Longest wait that a request is granted, from 1 to 60 seconds. Null: the default of the witness, 25."
  default     = null

  validation {
    condition     = var.max_wait_seconds == null ? true : var.max_wait_seconds >= 1 && var.max_wait_seconds <= 60 && floor(var.max_wait_seconds) == var.max_wait_seconds
    error_message = "max_wait_seconds must be a whole number from 1 to 60."
  }
}

variable "drain" {
  type        = bool
  description = "Whether the witness rejects writes with 503, so that all copies in KV can be completed before a migration. POST /leases/drain, which completes them, needs a token of bearer_tokens."
  default     = false
  nullable    = false
}

variable "jurisdiction" {
  type        = string
  description = "Jurisdiction of the Durable Objects: eu, us, fedramp or fedramp-high. It cannot be changed after the first apply: it is part of the id of every object. Null: none."
  default     = null

  validation {
    condition     = var.jurisdiction == null ? true : contains(["eu", "us", "fedramp", "fedramp-high"], var.jurisdiction)
    error_message = "jurisdiction must be eu, us, fedramp or fedramp-high, or null."
  }
}

variable "location_hints" {
  type        = map(string)
  description = "Where the Durable Objects of new slots are created, by prefix of the slot, such as { \"eu/\" = \"weur\" }; the longest prefix applies, and the empty one to all slots. Existing objects do not move."
  default     = {}
  nullable    = false

  validation {
    condition     = alltrue([for hint in values(var.location_hints) : try(contains(["wnam", "enam", "sam", "weur", "eeur", "apac", "apac-ne", "apac-se", "oc", "afr", "me"], hint), false)])
    error_message = "The values of location_hints must be wnam, enam, sam, weur, eeur, apac, apac-ne, apac-se, oc, afr or me."
  }

  validation {
    condition     = alltrue([for prefix in keys(var.location_hints) : !strcontains(prefix, ",") && trimspace(prefix) == prefix])
    error_message = "The prefixes of location_hints must not contain a comma, or white space at either end."
  }

  validation {
    condition     = try(length(join(",", [for prefix, hint in var.location_hints : "${prefix}=${hint}"])) <= 5120, true)
    error_message = "location_hints are too long: at most 5120 characters, the limit of a Worker variable."
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

locals {
  # The entry of TOKEN_POLICIES for each policy. A field that is not set is omitted.
  token_policies = jsonencode([
    for name, policy in var.token_policies : {
      for field, value in {
        name                 = name
        token                = policy.token
        access               = policy.access
        slots                = policy.slots
        holders              = policy.holders
        expiresAt            = policy.expires_at
        maxRequestsPerMinute = policy.max_requests_per_minute
      } : field => value if value != null
    }
  ])

  has_bearer_tokens = nonsensitive(length(var.bearer_tokens) > 0)

  # The rules whose violation could be a token in the wrong place. They are not validations of the variables, because a
  # failed validation prints the lines of the .tfvars file with the value.
  token_errors = compact([
    length(var.token_policies) > 0 || var.token_policies_secret != null || local.has_bearer_tokens
    ? "" : "token_policies and bearer_tokens are empty: the witness would reject all requests. Add a token policy.",

    length(var.token_policies) == 0 || var.token_policies_secret == null
    ? "" : "token_policies and token_policies_secret exclude each other: move all policies into one of them.",

    # Without the prefix, a token of 64 hexadecimal digits would look like a hash, and the state would contain it.
    alltrue([for policy in var.token_policies : can(regex("^sha256:[0-9a-f]{64}$", policy.token))])
    ? "" : "The token of each of token_policies must be sha256: and the SHA-256 of the token as 64 lower-case hexadecimal digits, never the token.",

    length(distinct(values(var.token_policies)[*].token)) == length(var.token_policies)
    ? "" : "Two of token_policies have the same token: give each client its own token.",

    length(local.token_policies) <= 5120
    ? "" : "token_policies are too long: as JSON, at most 5120 characters, the limit of a Worker variable.",

    nonsensitive(alltrue([for token in var.bearer_tokens : try(length(token) >= 32, false)]))
    ? "" : "Each of bearer_tokens must have at least 32 characters: use openssl rand -hex 32.",

    # The witness splits the list at commas and trims; a header value is visible ASCII.
    nonsensitive(alltrue([for token in var.bearer_tokens : can(regex("^[!-+\\--~]*$", token))]))
    ? "" : "Each of bearer_tokens must consist of visible ASCII characters without commas: no white space, no control character.",

    nonsensitive(try(length(join(",", var.bearer_tokens)) <= 5120, true))
    ? "" : "bearer_tokens are too long: with commas, at most 5120 characters, the limit of a Worker variable.",
  ])
}

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

resource "cloudflare_workers_kv_namespace" "leases" {
  account_id = var.account_id
  title      = var.namespace_title

  lifecycle {
    # New Durable Objects adopt leases and generations from this namespace.
    prevent_destroy = true
  }
}

resource "cloudflare_workers_kv_namespace" "leases" {
  account_id = var.account_id
  title      = var.namespace_title

  lifecycle {
    # The leases that a new object adopts, with their generations, are read from here.
    prevent_destroy = true
  }
}

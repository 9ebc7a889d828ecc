terraform {
  required_version = ">= 1.6.0"

  required_providers {
    cloudflare = {
      source = "cloudflare/cloudflare"
      # 5.7 added content_sha256; 5.8.0 to 5.8.2 did not send the migrations of Durable Objects.
      version = "~> 5.14"
    }
  }
}

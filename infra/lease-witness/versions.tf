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

terraform {
  # No provider: terraform_data and what else is used here is built into Terraform, so there is nothing to download.
  required_version = ">= 1.6.0"
}

terraform {
  # No provider: terraform_data is built into Terraform, so nothing is downloaded.
  required_version = ">= 1.6.0"
}

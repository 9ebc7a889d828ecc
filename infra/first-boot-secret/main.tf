terraform {
  required_version = ">= 1.6.0"
}

module "inputs" {
  source = "../object-storage-inputs"

  object_storage_region     = var.object_storage_region
  object_storage_access_key = var.object_storage_access_key
  object_storage_secret_key = var.object_storage_secret_key
  object_storage_bucket     = var.object_storage_bucket
  object_storage_domain     = var.object_storage_domain
}

locals {
  name = "${var.object_storage_provider}-object-storage"
  path = var.path != null ? var.path : "/var/lib/first-boot/${local.name}.yaml"

  # A JSON string is a double-quoted YAML scalar (YAML 1.2.2, 1.2), so no value is parsed as a number, boolean, comment or
  # key. It has one line, so it cannot end the block scalar in the cloud-config.
  manifest = <<-YAML
    apiVersion: v1
    kind: Secret
    metadata:
      name: ${jsonencode(local.name)}
      namespace: flux-system
    type: Opaque
    stringData:
      s3-endpoint: ${jsonencode(module.inputs.endpoint)}
      s3-region: ${jsonencode(module.inputs.region)}
      s3-bucket: ${jsonencode(module.inputs.bucket)}
      s3-access-key: ${jsonencode(module.inputs.access_key)}
      s3-secret-key: ${jsonencode(module.inputs.secret_key)}
  YAML

  # https://cloudinit.readthedocs.io/en/latest/reference/modules.html#write-files: without quotes the mode would be a number.
  cloud_config = <<-YAML
    #cloud-config
    write_files:
      - path: ${jsonencode(local.path)}
        owner: "root:root"
        permissions: "0600"
        content: |
          ${indent(6, chomp(local.manifest))}
  YAML
}

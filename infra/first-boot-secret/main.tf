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
  path = var.path != null ? var.path : "/var/lib/rancher/k3s/server/manifests/${local.name}.yaml"

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

  # k3s applies its manifests folder as soon as its API server runs. The namespace stands first, as k3s applies in order.
  # https://docs.k3s.io/installation/packaged-components
  objects = <<-YAML
    apiVersion: v1
    kind: Namespace
    metadata:
      name: flux-system
    ---
    ${local.manifest}
  YAML

  # Waits without holding up cloud-init, whose later commands may install k3s. Removing the file keeps the objects.
  removal = "until k3s kubectl get secret ${local.name} --namespace flux-system >/dev/null 2>&1; do sleep 2; done; rm -f ${local.path}"

  # https://cloudinit.readthedocs.io/en/latest/reference/modules.html#write-files: without quotes the mode would be a number.
  cloud_config = <<-YAML
    #cloud-config
    write_files:
      - path: ${jsonencode(local.path)}
        owner: "root:root"
        permissions: "0600"
        content: |
          ${indent(6, chomp(local.objects))}
    runcmd:
      - ${jsonencode(["systemd-run", "--no-block", "--unit=first-boot-secret", "sh", "-c", local.removal])}
  YAML
}

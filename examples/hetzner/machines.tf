locals {
  # A project has each name once. What an abandoned deployment of the same FQDN left keeps its own.
  name   = "${substr(var.deployment_id, 0, 8)}.${var.sovereign_fqdn}"
  labels = { deployment = var.deployment_id }

  # The keys of the object storage, then k3s, whose server applies them. The SSH key is here and not in hcloud_ssh_key: a
  # project has each key once, and two tenants may bring the same.
  k3s = {
    ssh_authorized_keys = [var.ssh_public_key]
    ssh_pwauth          = false
    # Hetzner sets an expired root password for a machine without a key of the project, and SSH would ask for a new one.
    chpasswd = { expire = false }
    runcmd   = [["sh", "-c", "curl -sfL https://get.k3s.io | INSTALL_K3S_VERSION=${var.k3s_version} sh -s - server"]]
  }
  user_data = join("\n", concat(
    ["Content-Type: multipart/mixed; boundary=\"part\"", "MIME-Version: 1.0", ""],
    flatten([for part in [module.first_boot_secret.cloud_config, "#cloud-config\n${jsonencode(local.k3s)}\n"] : [
      "--part", "Content-Type: text/cloud-config", "X-Merge-Type: list(append)+dict(recurse_array)+str()", "", part,
    ]]),
    ["--part--", ""],
  ))
}

resource "hcloud_network" "private" {
  name     = local.name
  ip_range = "10.0.0.0/16"
  labels   = local.labels
}

resource "hcloud_network_subnet" "private" {
  network_id   = hcloud_network.private.id
  type         = "cloud"
  network_zone = "eu-central"
  ip_range     = "10.0.1.0/24"
}

# Of the public addresses only: the load balancer reaches the machine over the private network.
resource "hcloud_firewall" "ssh" {
  name   = local.name
  labels = local.labels

  rule {
    direction  = "in"
    protocol   = "tcp"
    port       = "22"
    source_ips = ["0.0.0.0/0", "::/0"]
  }
}

resource "hcloud_server" "control_plane" {
  name         = local.name
  server_type  = var.server_type
  image        = "ubuntu-24.04"
  location     = var.region
  firewall_ids = [hcloud_firewall.ssh.id]
  labels       = local.labels
  user_data    = local.user_data

  lifecycle {
    # They count at the first boot only. A change, such as that of a key, would replace the machine.
    ignore_changes = [user_data, image]

    precondition {
      # https://docs.hetzner.cloud/reference/cloud#servers-create-a-server
      condition     = nonsensitive(length(local.user_data)) <= 32768
      error_message = "The user data has more than 32 KiB, which Hetzner does not accept: check the keys."
    }
  }
}

resource "hcloud_server_network" "control_plane" {
  server_id = hcloud_server.control_plane.id
  subnet_id = hcloud_network_subnet.private.id
}

resource "hcloud_load_balancer" "ingress" {
  name               = local.name
  load_balancer_type = "lb11"
  location           = var.region
  labels             = local.labels
}

resource "hcloud_load_balancer_network" "ingress" {
  load_balancer_id = hcloud_load_balancer.ingress.id
  subnet_id        = hcloud_network_subnet.private.id
}

resource "hcloud_load_balancer_target" "control_plane" {
  type             = "server"
  load_balancer_id = hcloud_load_balancer.ingress.id
  server_id        = hcloud_server.control_plane.id
  use_private_ip   = true
  depends_on       = [hcloud_server_network.control_plane, hcloud_load_balancer_network.ingress]
}

# k3s brings Traefik, which listens on both ports of the machine.
resource "hcloud_load_balancer_service" "ingress" {
  for_each         = toset(["80", "443"])
  load_balancer_id = hcloud_load_balancer.ingress.id
  protocol         = "tcp"
  listen_port      = tonumber(each.key)
  destination_port = tonumber(each.key)
}

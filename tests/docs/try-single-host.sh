#!/usr/bin/env bash
# Runs the commands of docs/install/single-host.md on a new Debian 12 with systemd, in namespaces of its own. Needs root,
# debootstrap and cgroup v2; takes some minutes. Nothing outside the folder FOLDER (default: a temporary one) changes.
# NODE_PREFIX: a folder with bin/node and lib/node_modules/npm, instead of the download that the page describes.
set -euo pipefail
repository=$(cd "$(dirname "$0")/../.." && pwd)
page=$repository/docs/install/single-host.md
folder=${FOLDER:-$(mktemp -d)}
host=$folder/host

# Prints the commands of the sections whose number matches.
commands() { awk -v sections="^($1)[.]" '/^## /{section=$2} /^```sh needs=root/{on=1; next} /^```/{on=0} on && section ~ sections' "$page"; }

if [ ! -e "$host/etc/debian_version" ]; then
  packages=$(commands 2 | tr -d '\\\n' | sed 's/.*--no-install-recommends *//; s/  */,/g')
  debootstrap --variant=minbase --include="systemd,systemd-sysv,dbus,iproute2,$packages" bookworm "$host"
fi
cp /etc/resolv.conf "$host/etc/resolv.conf"
rm -rf "$host/srv/repository.git"
git clone --quiet --bare "$repository" "$host/srv/repository.git"
git -C "$host/srv/repository.git" tag --force v1.0.0 "$(git -C "$repository" rev-parse HEAD)" >/dev/null

values() { commands 1 | sed 's#^SOURCE=.*#SOURCE=file:///srv/repository.git#'; }

# With network: what is downloaded.
if [ -n "${NODE_PREFIX:-}" ]; then
  mkdir -p "$host/usr/local/bin" "$host/usr/local/lib/node_modules"
  cp -L "$NODE_PREFIX/bin/node" "$host/usr/local/bin/"
  cp -r "$NODE_PREFIX/lib/node_modules/npm" "$host/usr/local/lib/node_modules/"
  ln -sf ../lib/node_modules/npm/bin/npx-cli.js "$host/usr/local/bin/npx"
fi
{
  echo 'set -euxo pipefail; export HOME=/root'
  values
  if [ -z "${NODE_PREFIX:-}" ]; then commands 3; else commands 3 | sed -n '/^git /,$p'; fi
} >"$host/root/download.sh"
env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin TERM=dumb ${https_proxy:+"https_proxy=$https_proxy"} \
  chroot "$host" bash /root/download.sh

# Without network, as PID 1 of its own: everything else.
{
  echo 'set -euxo pipefail; export HOME=/root; cd /opt/pool-allocation'
  values
  commands '[4-8]'
  cat <<'END'
sed -n 's/^Seccomp:\s*2$/the API has a system call filter/p' "/proc/$(systemctl show -p MainPID --value allocation-api)/status"
systemctl kill --signal=KILL allocation-api
curl -sS --fail-with-body --retry 30 --retry-delay 1 --retry-connrefused --retry-all-errors http://127.0.0.1:8080/readyz
systemctl stop allocation-api lease-witness
[ "$(systemctl show --value -p Result allocation-api lease-witness | sort -u | tr -d '\n')" = success ]
echo 'All steps of the page succeeded.'
END
} >"$host/root/page.sh"
cat >"$host/etc/systemd/system/page.service" <<'END'
[Unit]
After=postgresql@15-main.service
[Service]
Type=oneshot
ExecStart=/bin/bash /root/page.sh
StandardOutput=file:/root/page.log
StandardError=file:/root/page.log
ExecStopPost=-/bin/sh -c 'journalctl --no-pager -o cat -u allocation-api -u lease-witness -u pdns > /root/journal.log'
ExecStopPost=/bin/systemctl --no-block exit
END
mkdir -p "$host/etc/systemd/system/multi-user.target.wants"
ln -sf ../page.service "$host/etc/systemd/system/multi-user.target.wants/page.service"
rm -f "$host/root/page.log"

HOST=$host timeout --kill-after=5 300 unshare --mount --pid --fork --net --ipc --uts --cgroup --propagation private bash -euc '
  mount --bind "$HOST" "$HOST"
  cd "$HOST"
  mount -t proc proc proc
  mount -t sysfs -o ro sysfs sys
  mount -t cgroup2 cgroup2 sys/fs/cgroup
  for folder in run tmp dev; do mount -t tmpfs -o mode=755 tmpfs $folder; done
  chmod 1777 tmp
  for device in null zero full random urandom tty; do touch dev/$device; mount --bind /dev/$device dev/$device; done
  mkdir dev/pts dev/shm
  mount -t devpts -o newinstance,ptmxmode=0666 devpts dev/pts
  ln -s pts/ptmx dev/ptmx
  ln -s /proc/self/fd dev/fd
  mount -t tmpfs tmpfs dev/shm
  ip link set lo up
  hostname single-host
  mkdir -p old
  pivot_root . old
  cd /
  umount -l /old
  # The credentials of a unit are mounted by a helper process of systemd.
  mount --make-rshared /
  exec env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin container=other TERM=dumb \
    /lib/systemd/systemd --log-target=console --log-level=warning --show-status=0' || true

cat "$host/root/page.log"
if ! tail -n 1 "$host/root/page.log" | grep -q '^All steps of the page succeeded.$'; then
  tail -n 30 "$host/root/journal.log"
  exit 1
fi
[ -n "${FOLDER:-}" ] || rm -rf "$folder"

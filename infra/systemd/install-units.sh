#!/bin/sh
# Installs the units of this version, and each drop-in whose secret this host has: at the installation, an upgrade and a
# rollback. Starts nothing. ROOT: a folder instead of /, for tests.
set -eu
root=${ROOT-}
units=$root/etc/systemd/system
cd "$(dirname "$0")"
install -D -m 644 -t "$units" -- *.service *.timer
for dropin in *.d/*.conf; do
  secret=$(sed -n 's/^LoadCredential=[^:]*://p' "$dropin")
  [ ! -e "$root$secret" ] || install -D -m 644 -t "$units/${dropin%/*}" -- "$dropin"
done
[ -n "$root" ] || systemctl daemon-reload

#!/bin/sh
# Runs a command with a root file system of its own: as PID 1 of new namespaces, in which it may mount.
#
#   usage   isolate.sh WORKDIR UID GID COUNT READABLE... COUNT WRITABLE... COMMAND...
#
# The command sees the given paths, the libraries of the system, the files of /etc that resolve names, and its own processes.
# Nothing else of the machine exists for it. The paths are absolute; a folder comes before what is in it.
# WORKDIR is DATA/work/NAME. No command sees the folder DATA/root, so none can lead a mount elsewhere by a link.
# The exit code is that of the command, or 128 and the number of the signal that ended it.
set -eu
# PID 1 ignores a signal that it does not handle: without a trap, an interrupt ends what runs now, and the command starts.
trap 'exit 130' INT
explain() {
  if [ "$1" -lt 128 ]; then
    echo 'Error: Terraform could not be isolated: the lines before say why; correct it, or see PDM_TERRAFORM_ISOLATION.' >&2
  fi
}
trap 'explain $?' EXIT

path=$PATH
PATH=/usr/sbin:/usr/bin:/sbin:/bin
workdir=$1 uid=$2 gid=$3
shift 3
data=${workdir%/work/*}
root=$data/root

# A run has many commands, so this script starts as few processes as it can.

# OPTION SOURCE TARGET
bind() {
  if [ -d "$2" ]; then
    [ -d "$root$3" ] || mkdir -p "$root$3"
  else
    [ -d "$root${3%/*}" ] || mkdir -p "$root${3%/*}"
    [ -e "$root$3" ] || : >"$root$3"
  fi
  mount -o "$1" "$2" "$root$3"
}

# With each mount below it.
show() {
  if [ -e "$1" ] && ! [ "$1" -ef "$root$1" ]; then bind rbind "$1" "$1"; fi
}

# Makes all that is shown read-only.
protect() {
  cut -d ' ' -f 5 /proc/self/mountinfo | while read -r target; do
    case $target in *\\*) target=$(printf %b "$target") ;; esac
    case $target in
      "$root/proc" | "$root/proc"/*) ;;
      "$root"/*) mount -o remount,bind,ro "$target" ;;
    esac
  done
}

# What a path that is shown must not show.
cover() {
  if [ -d "$root$1" ]; then mount -t tmpfs tmpfs "$root$1"; fi
}

mount -t tmpfs -o mode=755 tmpfs "$root"
mkdir "$root/proc" "$root/dev" "$root/etc" "$root/.old" "$root/.tmp"
mkdir -m 1777 "$root/tmp"
mount -t proc proc "$root/proc"
links=
for name in bin sbin lib lib32 lib64 libx32; do
  if [ -L "/$name" ]; then links="$links /$name"; else show "/$name"; fi
done
if [ "$links" ]; then cp -P $links "$root"; fi
files=
for name in resolv.conf hosts host.conf nsswitch.conf gai.conf services protocols passwd group localtime ld.so.cache gitconfig; do
  if [ -f "/etc/$name" ]; then files="$files /etc/$name"; fi
done
if [ "$files" ]; then cp $files "$root/etc"; fi
ln -s /proc/self/fd "$root/dev/fd"
ln -s /proc/self/fd/0 "$root/dev/stdin"
ln -s /proc/self/fd/1 "$root/dev/stdout"
ln -s /proc/self/fd/2 "$root/dev/stderr"

count=$1
shift
while [ "$count" -gt 0 ]; do
  show "$1"
  # Where images keep an application, with its data.
  if [ "$1" = /usr ]; then cover /usr/src; fi
  count=$((count - 1))
  shift
done
protect
for name in null zero full random urandom tty; do
  if [ -e "/dev/$name" ]; then bind bind "/dev/$name" "/dev/$name"; fi
done
for name in work state root; do cover "$data/$name"; done
bind bind "$workdir" "$workdir"
count=$1
shift
while [ "$count" -gt 0 ]; do
  bind rbind "$1" "$1"
  count=$((count - 1))
  shift
done
mkdir -p "$root${HOME:-}"

cd "$root"
pivot_root . .old
umount -l /.old
rmdir /.old
cd "$workdir"
# On the disk, not in memory: Terraform downloads providers there. The path of its sockets must be short.
mkdir -p .tmp
mount -o bind .tmp /.tmp
unshare=$(command -v unshare)
trap - EXIT INT
set +e
PATH=$path
export TMPDIR=/.tmp
# In another user namespace, so that it cannot change these mounts. PID 1 ignores each signal that it does not handle, so
# the command is a child of it.
"$unshare" --user --map-user="$uid" --map-group="$gid" "$@"
exit $?

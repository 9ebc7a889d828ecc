#!/bin/sh
# What a hostile module tries. Prints one line for each way by which it gets what is not its own, after what protects it.
#
#   usage   attempts.sh MARK FOLDER     MARK is in everything that the module must not have; FOLDER has the files.
mark=$1 folder=$2

got() { echo "got $1"; }
# Only regular files, because reading a pipe of the service would block.
in_files() { for file; do [ -f "$file" ] && grep -aqs "$mark" "$file" && return 0; done; return 1; }
in_any() { for file; do grep -aqs "$mark" "$file" && return 0; done; return 1; }
ancestor() {
  pid=$$
  while [ "$pid" -gt 1 ]; do
    pid=$(sed -n 's/^PPid:[^0-9]*//p' "/proc/$pid/status" 2>/dev/null) || return 1
    [ -n "$pid" ] || return 1
    in_any "/proc/$pid/environ" && return 0
  done
  return 1
}
service=$(grep -als "$mark" /proc/[0-9]*/cmdline | cut -d/ -f3 | head -n 1)

ancestor && got 'process: the environment of its ancestors'
in_any /proc/[0-9]*/environ && got 'process: the environment of all processes'
[ -n "$service" ] && got 'user: the arguments of the service'
for pid in /proc/[0-9]*; do
  case $(cat "$pid/comm" 2>/dev/null) in node | MainThread) (: <"$pid/mem") 2>/dev/null && got 'process: the memory of the service' && break ;; esac
done
in_files /proc/[0-9]*/fd/* && got 'process: the open files of the service'
in_files /proc/"$service"/cwd/mark && got 'process: the working directory of the service'
in_files /proc/"$service"/root"$folder"/credentials/mark && got 'process: files through the root of the service'
[ -n "$service" ] && kill -0 "$service" 2>/dev/null && got 'user: signals to the service'
# PTRACE_SEIZE, which does not stop it. The kernel detaches when perl ends.
[ -n "$service" ] && [ "$(uname -m)" = x86_64 ] &&
  perl -e 'exit(syscall(101, 0x4206, $ARGV[0] + 0, 0, 0) == 0 ? 0 : 1)' "$service" 2>/dev/null && got 'process: ptrace'
in_files "$folder"/deployments/work/*/mark && got 'file: the working directories of other runs'
in_files "$folder"/deployments/state/*/* && got 'file: the states of other deployments'
in_files "$folder"/credentials/* && got 'file: the files of secrets'
in_files "$folder"/home/* "$folder"/home/.[a-z]* && got 'file: the home of the user'
in_files /tmp/*/credentials/* "$TMPDIR"/* && got 'file: temporary files'
umount -l / 2>/dev/null
unshare --user --map-root-user --mount sh -c 'umount -l "$1"; mount -o remount,rw /; nsenter -t 1 -m cat "$2"' sh \
  "$folder" "$folder/credentials/mark" 2>/dev/null | grep -q "$mark" && got 'never: what its mounts hide'
touch "$(dirname "$0")/written" 2>/dev/null && got 'user: writing to its module'
exit 0

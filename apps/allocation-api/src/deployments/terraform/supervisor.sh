#!/bin/sh
# Ends a process group when the service that started it is gone.
#
#   usage   supervisor.sh LEADER STEPS
#   stdin   `interrupted`: the group has got SIGINT. Another line: the command has ended, so there is nothing to do. End of
#           file: the service has died.
#   3, 4    the command's standard output and standard error, in non-blocking mode
#
# LEADER is the process ID of the group's leader. The group gets SIGINT once, so that Terraform saves its state, and STEPS
# times 0.1 seconds to end. Then the whole group gets SIGKILL. In the meantime the supervisor reads the command's output: writing to
# a closed pipe would kill Terraform by SIGPIPE before it has saved its state.

isInterrupted=
while read -r line; do
  [ "$line" = interrupted ] || exit 0
  isInterrupted=1
done
[ "$isInterrupted" ] || kill -s INT -- "-$1"
while [ "$2" -gt 0 ] && kill -s 0 "$1"; do
  cat <&3; cat <&4
  sleep 0.1 || sleep 1
  set -- "$1" $(($2 - 1))
done
kill -s KILL -- "-$1"

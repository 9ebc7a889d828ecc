#!/usr/bin/env bash
# Waits for a lease, runs a command while it holds the lease, and stops the command before the lease can expire.
set -euo pipefail

usage() {
  cat >&2 <<'TEXT'
Usage: with-lease.sh SLOT COMMAND [ARGUMENT…]
The command has the fencing token in LEASE_TOKEN. It must stop within a sixth of the TTL after SIGTERM; then it is killed.
Variables: WITNESS_URL (http://127.0.0.1:8787, without /lease), WITNESS_TOKEN_FILE or WITNESS_TOKEN, TTL_SECONDS (30)
Exit codes: that of the command; 64 wrong arguments, 75 the lease was lost and the command stopped
TEXT
  exit 64
}

readonly EXIT_LOST=75
[[ $# -ge 2 && ${WITNESS_URL-}/ != */lease/* ]] || usage
slot=$1
shift
url=${WITNESS_URL:-http://127.0.0.1:8787}/lease/$(jq -rn --arg slot "$slot" '$slot | @uri')
ttl_ms=$((${TTL_SECONDS:-30} * 1000))
# Unique to this start: the witness treats two processes with one name as one holder.
holder=$(hostname)_$$_$(od -An -N4 -tx1 /dev/urandom | tr -d ' \n')
umask 077
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
printf 'Authorization: Bearer %s\n' "${WITNESS_TOKEN-$(cat "${WITNESS_TOKEN_FILE:?set WITNESS_TOKEN_FILE}")}" >"$work/token"

# Milliseconds since the start of the machine, the time in which it was suspended included.
now_ms() {
  local uptime
  read -r uptime _ </proc/uptime
  echo "$((10#${uptime/./} * 10))"
}

to_seconds() { printf '%d.%03d' "$(($1 / 1000))" "$(($1 % 1000))"; }

# Prints the value of a header of the last response.
header() { tr -d '\r' <"$work/headers" | awk -F': *' -v name="$1" 'tolower($1) == name { value = $2 } END { print value }'; }

reject() {
  echo "The witness responded $status: $(cat "$work/response")" >&2
  exit 1
}

# send TIMEOUT_MS CURL_ARGUMENT…: sends one request. Sets status (000: no response) and, from a 200 or 412, the lease:
# generation, acquired_at, current_holder and is_vacant.
send() {
  local timeout=$1 text
  shift
  : >"$work/headers"
  status=$(curl -sS --max-time "$(to_seconds "$timeout")" -H "@$work/token" -D "$work/headers" -o "$work/response" \
    -w '%{http_code}' "$@" 2>/dev/null) || status=000
  case $status in
    200 | 412)
      text=$(jq -er '[.generation, .acquiredAt, .holder] | @tsv' "$work/response")
      IFS=$'\t' read -r generation acquired_at current_holder <<<"$text"
      text=$(header lease-remaining-ms)
      is_vacant=$((${text:-0} == 0))
      ;;
    404)
      generation=0 current_holder='' is_vacant=1
      grep -q 'This slot was never written' "$work/response" || reject
      ;;
    400 | 401 | 403) reject ;;
  esac
}

# write TIMEOUT_MS OP: sends a PUT with the generation of the last response. Sets sent_ms, the time before the request.
write() {
  sent_ms=$(now_ms)
  send "$1" -X PUT -H "If-Match: $generation" -H "X-Holder: $holder" \
    --data "{\"op\":\"$2\",\"ttlSeconds\":$((ttl_ms / 1000))}" "$url"
}

# Waits until the lease is vacant and acquires it.
acquire() {
  local after
  while :; do
    current_holder='' is_vacant=0
    send 5000 "$url"
    if [[ $status == 200 && $current_holder != "$holder" ]]; then
      send 30000 -H 'Prefer: wait=25' "$url?until=vacant"
    fi
    # A lease of this holder is that of a write whose response was lost.
    if ((is_vacant)) || [[ $current_holder == "$holder" ]]; then
      write 5000 acquire
      [[ $status == 200 ]] && return
    fi
    # The wait for a held lease has been a pause.
    if [[ $status != 200 ]]; then
      after=$(header retry-after)
      sleep "${after:-1}.$((RANDOM % 10))"
    fi
  done
}

signal() { kill "-$1" -- "-$command" 2>/dev/null; }

# Stops the processes of the command at the deadline. It reads later deadlines from its input, whose end means that the
# script has ended. It is a process of its own, so that it acts while the script waits for a response, or is suspended.
watch_deadline() {
  local deadline_ms=$1 line remaining
  trap '' INT TERM HUP
  while remaining=$((deadline_ms - $(now_ms))) && ((remaining > 0)); do
    if read -r -t "$(to_seconds "$remaining")" line; then
      deadline_ms=$line
    elif (($? <= 128)); then
      break
    fi
  done
  signal TERM || return 0
  local end=$(($(now_ms) + ttl_ms / 6))
  while (($(now_ms) < end)); do
    signal 0 || return 0
    sleep 0.1
  done
  signal KILL || true
}

# Renews once. Without a response, it reads the lease and compares; it does not repeat the write.
renew() {
  local timeout=$((ttl_ms / 10))
  write "$timeout" renew
  if [[ $status == 200 && $acquired_at == "$tenure" ]]; then
    deadline_ms=$((sent_ms + ttl_ms * 2 / 3))
    echo "$deadline_ms" >&"$deadlines"
    return
  fi
  [[ $status == 412 ]] || send "$timeout" "$url"
  if [[ $status == 200 || $status == 412 ]] && [[ $current_holder != "$holder" || $acquired_at != "$tenure" || $is_vacant == 1 ]]; then
    deadline_ms=0
    signal TERM || true
  fi
  return 1
}

acquire
tenure=$acquired_at
deadline_ms=$((sent_ms + ttl_ms * 2 / 3))
# In a process group of its own.
LEASE_TOKEN=$generation setsid "$@" &
command=$!
exec {deadlines}> >(watch_deadline "$deadline_ms")
watcher=$!
trap 'signal TERM' INT TERM HUP
# The watcher can end before the script.
trap '' PIPE

next_ms=$((sent_ms + ttl_ms / 5))
while kill -0 "$command" 2>/dev/null; do
  sleep 0.2
  now=$(now_ms)
  if ((now < next_ms || now >= deadline_ms)); then continue; fi
  if renew; then next_ms=$((sent_ms + ttl_ms / 5)); else next_ms=$(($(now_ms) + ttl_ms / 20)); fi
done
code=0
wait "$command" || code=$?
is_lost=$(($(now_ms) >= deadline_ms))

# Processes that the command has left behind.
exec {deadlines}>&-
wait "$watcher" || true
((is_lost)) && exit "$EXIT_LOST"
# Once: without a response, the lease expires.
send 5000 -X DELETE -H "If-Match: $generation" -H "X-Holder: $holder" "$url" || true
exit "$code"

#!/usr/bin/env bash
# Reserves and commits a name and waits until DNS has it, or releases it. README.md describes the retries.
set -euo pipefail

usage() {
  cat >&2 <<'TEXT'
Usage: name.sh publish SUBDOMAIN IPV4   prints the allocation with its reservationToken, which is a secret
       name.sh release SUBDOMAIN
Variables: API_URL (http://127.0.0.1:8080), POOL (pool.test), TIMEOUT_SECONDS (60),
           RESERVATION_TOKEN for release: the release fails if the name has another holder by now
Exit codes: 0 done, 1 rejected, 64 wrong arguments, 75 no result within the timeout
TEXT
  exit 64
}

readonly EXIT_REJECTED=1 EXIT_TIMEOUT=75 MAX_DELAY=8
api=${API_URL:-http://127.0.0.1:8080} pool=${POOL:-pool.test} timeout=${TIMEOUT_SECONDS:-60}
umask 077
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# 128 random bits: the key gives access to the token in the stored response.
new_key() { od -An -N16 -tx1 /dev/urandom | tr -d ' \n'; }

# Prints the value of a header of the last response.
header() { tr -d '\r' <"$work/headers" | awk -F': *' -v name="$1" 'tolower($1) == name { value = $2 } END { print value }'; }

# Sleeps before the next attempt: for Retry-After, else for a random part of a delay that doubles.
pause() {
  local delay=$((1 << ($1 < 3 ? $1 : 3))) after
  after=$(header retry-after)
  [[ $after =~ ^[0-9]+$ ]] && delay=$after || delay=$((1 + RANDOM % (delay < MAX_DELAY ? delay : MAX_DELAY)))
  if ((SECONDS + delay >= timeout)); then
    echo "No result within $timeout s; the last status was $status. It is unknown whether the last write took effect." >&2
    exit "$EXIT_TIMEOUT"
  fi
  sleep "$delay"
}

# call METHOD PATH [BODY]: sets status and response. All attempts of one call have the same Idempotency-Key, so a write
# whose response was lost takes effect once. Secrets are in files: other users can read arguments.
call() {
  local attempt key
  key=$(new_key)
  printf 'Idempotency-Key: %s\n' "$key" >"$work/request-headers"
  printf '%s' "${3-}" >"$work/body"
  for ((attempt = 0; ; attempt++)); do
    : >"$work/headers"
    status=$(curl -sS --max-time 15 -X "$1" -H "@$work/request-headers" ${3+--data-binary "@$work/body"} \
      -D "$work/headers" -o "$work/response" -w '%{http_code}' "$api$2" 2>"$work/error") || status=000
    case $status in
      000 | 429 | 500 | 502 | 503 | 504) pause "$attempt" ;;
      *) break ;;
    esac
  done
  response=$(cat "$work/response")
}

# expect STATUS…: ends the script if the last status is another one.
expect() {
  local expected
  for expected; do [[ $status == "$expected" ]] && return; done
  echo "Rejected with $status: $response" >&2
  exit "$EXIT_REJECTED"
}

# A 202 has taken effect. The service publishes the records without another request; only the client waits.
wait_until_published() {
  local path=$1 last=
  while :; do
    call GET "$path"
    expect 200
    case $(jq -r .dns.status <<<"$response") in
      published) return ;;
      failing)
        [[ $response == "$last" ]] || jq -r '"DNS: " + .dns.detail' <<<"$response" >&2
        last=$response
        ;;
    esac
    : >"$work/headers"
    pause 0
  done
}

publish() {
  local subdomain=$1 address=$2 token
  call POST "/api/v1/pool/$pool/reserve" "$(jq -n --arg sub "$subdomain" '{subdomain: $sub, createdBy: "name.sh"}')"
  expect 201
  token=$(jq -r .reservationToken <<<"$response")
  call POST "/api/v1/pool/$pool/commit" "$(
    jq -n --arg sub "$subdomain" --arg token "$token" --arg fqdn "$subdomain.$pool" --arg ip "$address" \
      '{subdomain: $sub, reservationToken: $token, sovereignFQDN: $fqdn, loadBalancerIP: $ip}'
  )"
  expect 200 202
  wait_until_published "/api/v1/pool/$pool/allocations/$subdomain"
  jq --arg token "$token" '. + {reservationToken: $token}' <<<"$response"
}

release() {
  call DELETE "/api/v1/pool/$pool/release" "$(
    jq -n --arg sub "$1" --arg token "${RESERVATION_TOKEN-}" \
      '{subdomain: $sub} + if $token == "" then {} else {reservationToken: $token} end'
  )"
  expect 200 202
}

case "${1-} $#" in
  'publish 3') publish "$2" "$3" ;;
  'release 2') release "$2" ;;
  *) usage ;;
esac

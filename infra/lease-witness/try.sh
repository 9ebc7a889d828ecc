#!/usr/bin/env bash
# Creates a lease witness on a Cloudflare account, tests it, and removes it. docs/install/cloudflare.md describes it.
set -euo pipefail

usage='usage: infra/lease-witness/try.sh [up|test|down]

  up     first apply, second apply, empty plan
  test   race of 32 writers, a wait, a token rotation, empty plan
  down   removal
Without an argument: all three. A failure leaves the witness, so that you can look at it; then run down.

required: CLOUDFLARE_API_TOKEN  may edit Workers scripts and Workers KV storage of the account
          CLOUDFLARE_ACCOUNT_ID
          WORKERS_DEV_SUBDOMAIN acme in lease-witness.acme.workers.dev
optional: TRY_NAME     name of the script and the KV namespace, default lease-witness-trial
          TRY_DIR      state, tokens and log, default .data/try-on-cloudflare of this repository
          TRY_TIMEOUT  seconds until a change must have propagated, default 180
          SCRIPT_FILE  built script, default: builds it
          WITNESS_URL  base URL, default: workers.dev
          TERRAFORM    default terraform'

repository=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
name=${TRY_NAME:-lease-witness-trial}
directory=${TRY_DIR:-$repository/.data/try-on-cloudflare}
timeout=${TRY_TIMEOUT:-180}
terraform=${TERRAFORM:-terraform}
log=$directory/terraform.log

step() { printf '\n== %s (%d s)\n' "$1" "$SECONDS"; }
fail() {
  printf 'FAILED: %s\n' "$1" >&2
  exit 1
}
require() {
  local variable
  for variable in "$@"; do
    [ -n "${!variable:-}" ] || fail "$variable is not set.
$usage"
  done
}

# ---- Terraform

run_terraform() {
  printf '\n$ terraform %s\n' "$*" >>"$log"
  if ! "$terraform" -chdir="$directory" "$@" -no-color >"$directory/output.txt" 2>&1; then
    cat "$directory/output.txt" >>"$log"
    tail -n 30 "$directory/output.txt" >&2
    fail "terraform $1; the whole output is in $log"
  fi
  cat "$directory/output.txt" >>"$log"
}

apply() {
  run_terraform apply -auto-approve -input=false
  grep -E '^(Plan:|Apply complete|No changes)|migrations  ' "$directory/output.txt" || true
}

expect_empty_plan() {
  local code=0
  "$terraform" -chdir="$directory" plan -detailed-exitcode -input=false -no-color >"$directory/output.txt" 2>&1 || code=$?
  cat "$directory/output.txt" >>"$log"
  [ "$code" = 0 ] || {
    cat "$directory/output.txt" >&2
    fail 'the plan is not empty'
  }
  echo 'the plan is empty'
}

# Writes the policies of the named tokens, and creates the tokens that do not exist.
set_policies() {
  local token separator='' policies=''
  for token in "$@"; do
    if [ ! -f "$directory/$token.header" ]; then
      printf 'Authorization: Bearer %s' "$(openssl rand -hex 32)" >"$directory/$token.header"
    fi
    policies+="$separator\"$token\": {\"token\": \"sha256:$(hash_token "$token")\", \"access\": \"write\", \"slots\": [\"try/\"]}"
    separator=', '
  done
  printf '{"token_policies": {%s}}\n' "$policies" >"$directory/terraform.tfvars.json"
}

hash_token() { sed 's/^.* //' "$directory/$1.header" | tr -d '\n' | openssl dgst -sha256 -r | cut -c1-64; }

# ---- HTTP

# request TOKEN PATH [argument of curl ...]: prints the status. 000: no response.
request() {
  local token=$1 path=$2 header=()
  shift 2
  # A file, because other users of the machine can read the arguments of a process.
  [ "$token" = none ] || header=(-H "@$directory/$token.header")
  curl -sS --max-time 90 -o /dev/null -w '%{http_code}' ${header[@]+"${header[@]}"} "$@" "$url$path" 2>>"$log" || true
}

# expect STATUS WHAT TOKEN PATH [argument of curl ...]
expect() {
  local expected=$1 what=$2 status
  shift 2
  status=$(request "$@")
  [ "$status" = "$expected" ] || fail "$what: $status instead of $expected"
  echo "$what: $status"
}

# The same, repeated until the status is the expected one: a change takes up to a minute to reach every location.
expect_soon() {
  local expected=$1 what=$2 status='' started=$SECONDS
  shift 2
  while status=$(request "$@"); [ "$status" != "$expected" ]; do
    [ $((SECONDS - started)) -lt "$timeout" ] || fail "$what: $status instead of $expected after $timeout s"
    sleep 1
  done
  echo "$what: $status after $((SECONDS - started)) s"
}

acquire() { # TOKEN GENERATION HOLDER
  request "$1" "/lease/$slot" -X PUT -H "If-Match: $2" -d "{\"holder\":\"$3\",\"ttlSeconds\":300}"
}

# ---- Steps

up() {
  require CLOUDFLARE_API_TOKEN CLOUDFLARE_ACCOUNT_ID WORKERS_DEV_SUBDOMAIN
  local script_file=${SCRIPT_FILE:-$repository/apps/lease-witness/dist/index.js}
  mkdir -p "$directory"
  chmod 700 "$directory"
  if [ -z "${SCRIPT_FILE:-}" ]; then
    step 'build the script'
    (cd "$repository" && npx -y pnpm@12 --filter lease-witness build >>"$log" 2>&1) || fail "the build; its output is in $log"
  fi

  step 'first apply'
  # A copy, so that down can remove the protection from deletion.
  rm -rf "$directory/module"
  cp -R "$repository/infra/lease-witness" "$directory/module"
  cat >"$directory/main.tf" <<EOF
terraform {
  required_providers {
    cloudflare = {
      source  = "cloudflare/cloudflare"
      version = "~> 5.19"
    }
  }
}

variable "token_policies" {
  type = map(object({ token = string, access = string, slots = set(string) }))
}

module "witness" {
  source = "./module"

  account_id            = "$CLOUDFLARE_ACCOUNT_ID"
  workers_dev_subdomain = "$WORKERS_DEV_SUBDOMAIN"
  script_name           = "$name"
  namespace_title       = "$name"
  script_file           = "$script_file"
  token_policies        = var.token_policies
}

output "url" {
  value = module.witness.url
}
EOF
  set_policies first
  run_terraform init -input=false
  apply

  step 'second apply: removes the applied migration, nothing else'
  apply
  expect_empty_plan
}

smoke_test() {
  url=${WITNESS_URL:-$("$terraform" -chdir="$directory" output -raw url)}
  slot=try/$(date +%s)-$$
  local n status winner='' wins=0 waiter started

  step "the witness responds at $url"
  expect_soon 200 'GET /healthz' none /healthz
  expect 401 'no token' none "/lease/$slot"
  expect_soon 404 'a new slot' first "/lease/$slot"
  expect 403 'a slot outside the policy' first /lease/other

  step 'race of 32 writers'
  for n in $(seq 32); do
    acquire first 0 "writer-$n" >"$directory/race.$n" &
  done
  wait
  for n in $(seq 32); do
    status=$(cat "$directory/race.$n")
    case $status in
    200) winner=writer-$n wins=$((wins + 1)) ;;
    412) ;;
    *) fail "writer $n: $status instead of 200 or 412" ;;
    esac
  done
  rm -f "$directory"/race.*
  [ "$wins" = 1 ] || fail "$wins writers acquired the lease instead of 1"
  echo "1 writer acquired the lease ($winner), 31 got 412"

  step 'a wait until the lease is free: a renewal does not end it, the release does'
  request first "/lease/$slot?until=vacant" -H 'Prefer: wait=25' >"$directory/wait.status" &
  waiter=$!
  sleep 1
  [ "$(acquire first 1 "$winner")" = 200 ] || fail 'the holder could not renew'
  sleep 1
  kill -0 "$waiter" 2>/dev/null || fail "the wait ended early: $(cat "$directory/wait.status")"
  started=$SECONDS
  expect 204 'release' first "/lease/$slot" -X DELETE -H 'If-Match: 2' -H "X-Holder: $winner"
  wait "$waiter" || true
  status=$(cat "$directory/wait.status")
  [ "$status" = 200 ] || fail "the wait: $status instead of 200"
  [ $((SECONDS - started)) -le 5 ] || fail "the wait ended $((SECONDS - started)) s after the release"
  echo "the wait ended within $((SECONDS - started + 1)) s of the release: 200"

  step 'a token rotation, while a lease is held'
  [ "$(acquire first 3 holder)" = 200 ] || fail 'the slot could not be acquired again'
  set_policies first second
  apply
  expect_soon 412 'the new token; the lease is still held' second "/lease/$slot" -X PUT -H 'If-Match: 3' -d '{"holder":"other"}'
  expect_soon 200 'the old token' first "/lease/$slot"
  set_policies second
  apply
  expect_soon 401 'the old token after its removal' first "/lease/$slot"
  expect_soon 204 'the new token releases generation 4' second "/lease/$slot" -X DELETE -H 'If-Match: 4' -H 'X-Holder: holder'
  expect_empty_plan
}

down() {
  require CLOUDFLARE_API_TOKEN
  [ -d "$directory/module" ] || fail "there is no trial in $directory"
  step 'removal'
  local file
  for file in "$directory"/module/*.tf; do
    sed 's/prevent_destroy = true/prevent_destroy = false/' "$file" >"$directory/edited"
    cat "$directory/edited" >"$file"
  done
  run_terraform destroy -auto-approve -input=false
  grep '^Destroy complete' "$directory/output.txt"
  rm -rf "$directory"
}

case ${1:-all} in
up) up ;;
test) smoke_test ;;
down) down ;;
all)
  require CLOUDFLARE_API_TOKEN CLOUDFLARE_ACCOUNT_ID WORKERS_DEV_SUBDOMAIN
  trap '[ $? = 0 ] || echo "The witness $name may still exist: infra/lease-witness/try.sh down removes it." >&2' EXIT
  up
  smoke_test
  down
  printf '\nAll steps succeeded in %d s.\n' "$SECONDS"
  ;;
-h | --help) echo "$usage" ;;
*) fail "$1 is not a command
$usage" ;;
esac

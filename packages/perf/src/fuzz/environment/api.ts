import { chmodSync, mkdtempSync, writeFileSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type Postgres, startPostgres } from '@pool/dev/postgres'
import { startNode } from '@pool/dev/process'
import { createDatabaseClient } from '@pool/runtime/database/client'
import { startCloudflareDouble } from '@pool/test-kit/dns/cloudflare-double.ts'
import { startTcpProxy } from '@pool/test-kit/tcp-proxy.ts'
import { type LogFile, openLogFile } from './log-file.ts'

export interface RunningService {
  readonly pid: number
  readonly port: number
  readonly log: LogFile
  readonly stop: () => Promise<unknown>
}

export interface ApiEnvironment extends RunningService {
  readonly operatorPort: number
  readonly operatorToken: string
  readonly stopDatabase: () => Promise<void>
  readonly startDatabase: () => Promise<void>
  /** Freezes the connections to the DNS provider. */
  readonly stopDns: () => void
  readonly startDns: () => void
}

/**
 * Stands for Terraform, which this does not test. The state has one machine, named after the organization that created it,
 * and every command shows it. The apply of an organization whose name starts with `Stuck` fails and leaves its lock, which
 * can be lifted at the second attempt.
 */
export const fakeTerraform = `#!/bin/sh
state=$(sed -n 's/.*"path": "\\(.*\\)".*/\\1/p' main.tf.json 2>/dev/null)
lock=\${state%/*}/.\${state##*/}.lock.info
machine=$(sed -n 's/.*"name":"\\([A-Za-z0-9]*\\)".*/\\1/p' "$state" 2>/dev/null)
lineage=$(sed -n 's/.*"lineage":"\\([^"]*\\)".*/\\1/p' "$state" 2>/dev/null)
save() { printf '{"version":4,"serial":1,"resources":[%s],\\n"lineage":"%s"}' "$1" "\${lineage:-$$}" >"$state"; }
line() { printf '{"@level":"info","@message":"%s %s","type":"%s"}\\n' "$2" "$machine" "$1"; }
case $1 in
version) echo '{"terraform_version":"1.9.0"}' ;;
state) if [ "$2" = push ]; then for file; do :; done; cp "$file" "$state"; else cat "$state" 2>/dev/null || true; fi ;;
show) case $* in *-json*) echo '{"format_version":"1.2"}' ;; *) echo "Machines: $machine" ;; esac ;;
untaint) [ ! -f "$lock" ] || { printf 'Lock Info:\\n  ID:        lock-1\\n  Operation: OperationTypeApply\\n'; exit 1; } ;;
force-unlock) if [ -f "$lock.stuck" ]; then rm "$lock.stuck"; exit 1; else rm -f "$lock"; fi ;;
destroy)
  line apply_start Destroying
  save '' ;;
apply)
  if [ -z "$machine" ]; then
    machine=$(printf %s "$TF_VAR_org_name" | tr -cd A-Za-z0-9 | cut -c1-60)
    save "{\\"mode\\":\\"managed\\",\\"type\\":\\"machine\\",\\"name\\":\\"$machine\\",\\"instances\\":[{}]}"
  fi
  case $TF_VAR_org_name in Stuck*)
    echo '{"ID":"lock-1"}' >"$lock"
    touch "$lock.stuck"
    line refresh_start Reading
    sleep 0.2
    echo 'Error releasing the state lock' >&2
    exit 1 ;;
  esac
  line apply_complete Applied
  printf '{"@level":"info","@message":"Outputs: 2","type":"outputs","outputs":{"load_balancer_ip":{"sensitive":false,"value":"203.0.113.9"},"details":{"sensitive":false,"value":"%s"}}}\\n' "$machine" ;;
esac
`
/** Of web pages that may send requests. */
export const ALLOWED_ORIGIN = 'https://console.example'
/** Nothing listens there: connections are refused immediately. */
const REFUSED_ADDRESS = '127.0.0.1:1'

const startDatabase = async (dataDir: string, password: string, cleanup: AsyncDisposableStack) => {
  let starting: Promise<Postgres> = startPostgres({ dataDir, fsync: false })
  cleanup.defer(async () => (await starting.catch(() => undefined))?.stop('immediate'))
  const { url, port } = await starting
  const admin = createDatabaseClient(url, { maxConnections: 1, applicationName: 'fuzz' })
  // The password has letters and digits only.
  await admin.unsafe(`create role fuzz login password '${password}'`)
  await admin.unsafe('create database fuzz owner fuzz')
  await admin.end({ timeout: 1 })
  return {
    url: `postgres://fuzz:${password}@127.0.0.1:${port}/fuzz`,
    stop: async () => (await starting).stop('immediate'),
    start: async () => {
      starting = startPostgres({ dataDir, port, fsync: false })
      await starting
    },
  }
}

/** The API with both listeners, on a Postgres and a DNS provider that can be stopped. */
export const startApi = async (
  folder: string,
  mark: string,
  cleanup: AsyncDisposableStack,
  terraform = fakeTerraform,
): Promise<ApiEnvironment> => {
  const dataDir = mkdtempSync(join(tmpdir(), 'pool-fuzz-'))
  cleanup.defer(() => rm(dataDir, { recursive: true, force: true }))
  const database = await startDatabase(dataDir, `DB${mark}0123456789`, cleanup)
  const double = await startCloudflareDouble({ token: `CF${mark}0123456789abcdef`, delayMs: 20 })
  cleanup.use(double)
  double.addZone('pool.test')
  const proxy = await startTcpProxy(Number(new URL(double.url).port))
  cleanup.defer(() => proxy.close())
  const binary = join(folder, 'terraform')
  writeFileSync(binary, terraform)
  chmodSync(binary, 0o755)

  const operatorToken = `OP${mark}0123456789abcdef`
  const log = openLogFile(join(folder, 'api.log'))
  const child = startNode({
    entry: fileURLToPath(import.meta.resolve('allocation-api/src/main.ts')),
    onLine: log.write,
    env: {
      PORT: '0',
      PDM_DATABASE_URL: database.url,
      PDM_OPERATOR_PORT: '0',
      PDM_OPERATOR_TOKENS: operatorToken,
      // No reservation expires during a run: an available name was released.
      PDM_RESERVATION_TTL: '1h',
      PDM_NAME_COOL_OFF: '15s',
      PDM_ALLOWED_ORIGINS: ALLOWED_ORIGIN,
      PDM_DNS_COMMIT_WAIT: '200ms',
      PDM_VALIDATION_ATTEMPTS: '10000',
      PROVIDER_TOKEN_URLS: `hetzner=https://${REFUSED_ADDRESS}/`,
      OBJECT_STORAGE_DOMAIN: 'localhost:1',
      PDM_TERRAFORM_BINARY: binary,
      PDM_DEPLOYMENTS_DIR: join(folder, 'deployments'),
      PDM_DEPLOYMENT_CONCURRENCY: '6',
      DNSPROVIDER_KIND: 'cloudflare',
      DNSPROVIDER_CLOUDFLARE_URL: Object.assign(new URL(double.url), { port: String(proxy.port) }).href,
      DNSPROVIDER_CLOUDFLARE_API_TOKEN: double.token,
    },
  })
  cleanup.defer(async () => void (await child.kill()))
  const { port, operatorPort } = await child.ready
  if (typeof port !== 'number' || typeof operatorPort !== 'number')
    throw new Error('the API did not log the ports that it listens on')
  return {
    pid: child.pid,
    port,
    operatorPort,
    operatorToken,
    log,
    stop: () => child.stop(),
    stopDatabase: database.stop,
    startDatabase: database.start,
    stopDns: proxy.freeze,
    startDns: proxy.thaw,
  }
}

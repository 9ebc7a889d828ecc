import { hash } from 'node:crypto'
import { chmodSync, existsSync, mkdtempSync, writeFileSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { freePort } from '@pool/dev/ports'
import { ensureDatabase, startPostgres } from '@pool/dev/postgres'
import { startApi, startLocalWitness } from '@pool/test-kit/services.ts'

const isInstalled = (program: string): boolean =>
  existsSync(program) || (process.env.PATH ?? '').split(delimiter).some(folder => existsSync(join(folder, program)))

/**
 * Whether a program of a test is missing, by its name or its path; then it prints which one. REQUIRE_ALL_DEPS does not
 * apply: not every machine has Python and Java.
 */
export const isMissing = (test: string, programs: readonly string[], install: string): boolean => {
  const missing = programs.filter(program => !isInstalled(program))
  if (missing.length > 0) process.stderr.write(`Skipped: ${test} needs ${missing.join(', ')}. ${install}\n`)
  return missing.length > 0
}

/** Nothing listens there: connections are refused immediately. */
const REFUSED_ADDRESS = '127.0.0.1:1'

/**
 * Stands for Terraform, which these tests do not test. It allocates one address. The state has one machine, named after the
 * organization that created it, and every command shows it.
 */
const FAKE_TERRAFORM = `#!/bin/sh
state=$(sed -n 's/.*"path": "\\(.*\\)".*/\\1/p' main.tf.json 2>/dev/null)
machine=$(sed -n 's/.*"name":"\\([A-Za-z0-9]*\\)".*/\\1/p' "$state" 2>/dev/null)
save() { printf '{"version":4,"serial":1,"resources":[%s],"lineage":"tests"}' "$1" >"$state"; }
line() { printf '{"@level":"info","@message":"%s %s","type":"%s"}\\n' "$2" "$machine" "$1"; }
case $1 in
version) echo '{"terraform_version":"1.11.4"}' ;;
state) if [ "$2" = push ]; then save ''; else cat "$state" 2>/dev/null || true; fi ;;
show) case $* in *-json*) echo '{"format_version":"1.2"}' ;; *) echo "Machines: $machine" ;; esac ;;
destroy)
  line apply_start Destroying
  save '' ;;
apply)
  machine=\${machine:-$(printf %s "$TF_VAR_org_name" | tr -cd A-Za-z0-9 | cut -c1-60)}
  save '{"mode":"managed","type":"machine","name":"'"$machine"'","instances":[{}]}'
  line apply_complete Applied
  echo '{"@level":"info","@message":"Outputs: 1","type":"outputs","outputs":{"load_balancer_ip":{"sensitive":false,"value":"203.0.113.9"}}}' ;;
esac
`

/** What the bearer of a token may do: `schemathesis/oracles.py` judges the responses by it. */
export interface TokenRights {
  readonly token: string
  /** `none`: the token has expired, or is none of the service. */
  readonly access: 'write' | 'read' | 'none'
  /** Prefixes of slots; absent: all. */
  readonly slots?: readonly string[]
  /** Names of holders, and prefixes followed by `*`; absent: all. */
  readonly holders?: readonly string[]
}

/** The first one has all rights. */
const OPERATOR_TOKENS = [
  { token: 'operator-token-of-the-tests-0123456789', access: 'write' },
  { token: 'not-an-operator-token-of-the-tests-012', access: 'none' },
] as const satisfies readonly TokenRights[]

/** The first one has all rights; the others have policies. Many generated slots begin with 0. */
const WITNESS_TOKENS = [
  { token: 'witness-token-of-the-tests-0123456789', access: 'write' },
  { token: 'read-token-of-the-tests-0123456789abc', access: 'read' },
  { token: 'slots-token-of-the-tests-0123456789ab', access: 'write', slots: ['0', 'a'] },
  { token: 'holder-token-of-the-tests-0123456789a', access: 'write', holders: ['region-a/*', '0'] },
  { token: 'expired-token-of-the-tests-0123456789', access: 'none' },
] as const satisfies readonly TokenRights[]

const toPolicy = ({ token, access, ...limits }: TokenRights, number: number): object => ({
  name: `policy-${number}`,
  token: `sha256:${hash('sha256', token)}`,
  access: access === 'read' ? 'read' : 'write',
  ...(access === 'none' ? { expiresAt: '2026-01-01T00:00:00Z' } : {}),
  ...limits,
})

export interface Services extends AsyncDisposable {
  readonly apiUrl: string
  readonly operatorUrl: string
  /** The first one has all rights. */
  readonly operatorTokens: readonly [TokenRights, ...TokenRights[]]
  readonly witnessUrl: string
  readonly witnessTokens: readonly [TokenRights, ...TokenRights[]]
}

/** Both services as processes, with storage of their own. The pool is `pool.test`. */
export const startServices = async (): Promise<Services> => {
  await using cleanup = new AsyncDisposableStack()
  const folder = mkdtempSync(join(tmpdir(), 'pool-openapi-'))
  cleanup.defer(() => rm(folder, { recursive: true, force: true, maxRetries: 3 }))
  const postgres = await startPostgres({ dataDir: join(folder, 'postgres'), fsync: false })
  cleanup.defer(() => postgres.stop('immediate'))
  const terraform = join(folder, 'terraform')
  writeFileSync(terraform, FAKE_TERRAFORM)
  chmodSync(terraform, 0o755)
  const [operator] = OPERATOR_TOKENS
  const [witnessClient, ...limited] = WITNESS_TOKENS

  const api = cleanup.use(
    await startApi(await ensureDatabase(postgres.url, 'pdm'), {
      PDM_OPERATOR_TOKENS: operator.token,
      // No reservation expires during a run: a name that is free was released.
      PDM_RESERVATION_TTL: '1h',
      PDM_DNS_COMMIT_WAIT: '200ms',
      PDM_TEST_SETTINGS: JSON.stringify({ validationAttempts: 10_000 }),
      PDM_TERRAFORM_BINARY: terraform,
      PDM_DEPLOYMENTS_DIR: join(folder, 'deployments'),
      DNSPROVIDER_LOCAL_PORT: String(await freePort()),
      OBJECT_STORAGE_DOMAIN: 'localhost:1',
      PROVIDER_TOKEN_URLS: `hetzner=https://${REFUSED_ADDRESS}/`,
    }),
  )
  const witness = cleanup.use(
    await startLocalWitness(join(folder, 'witness'), {
      BEARER_TOKENS_CSV: witnessClient.token,
      TOKEN_POLICIES: JSON.stringify(limited.map(toPolicy)),
      MAX_WAIT_SECONDS: '1',
    }),
  )
  const services = cleanup.move()
  return {
    apiUrl: api.url,
    operatorUrl: api.operatorUrl ?? '',
    operatorTokens: OPERATOR_TOKENS,
    witnessUrl: witness.url,
    witnessTokens: WITNESS_TOKENS,
    [Symbol.asyncDispose]: () => services.disposeAsync(),
  }
}

import { chmodSync, mkdtempSync, writeFileSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { freePort } from '@pool/dev/ports'
import { ensureDatabase, startPostgres } from '@pool/dev/postgres'
import { TOKEN } from '@pool/test-kit/lease-connection.ts'
import { startApi, startLocalWitness } from '@pool/test-kit/services.ts'

/** Nothing listens there: connections are refused immediately. */
const REFUSED_ADDRESS = '127.0.0.1:1'

/** Stands for Terraform, which these tests do not test. It allocates one address and keeps one resource in the state. */
const FAKE_TERRAFORM = `#!/bin/sh
state=$(sed -n 's/.*"path": "\\(.*\\)".*/\\1/p' main.tf.json 2>/dev/null)
save() { printf '{"version":4,"serial":1,"resources":[%s],"lineage":"tests"}' "$1" >"$state"; }
case $1 in
version) echo '{"terraform_version":"1.11.4"}' ;;
state) cat "$state" 2>/dev/null || true ;;
show) case $* in *-json*) echo '{"format_version":"1.2"}' ;; *) echo 'No changes.' ;; esac ;;
destroy) save '' ;;
apply)
  save '{"mode":"managed","type":"machine","name":"machine","instances":[{}]}'
  echo '{"@level":"info","@message":"Outputs: 1","type":"outputs","outputs":{"load_balancer_ip":{"sensitive":false,"value":"203.0.113.9"}}}' ;;
esac
`

export interface Services extends AsyncDisposable {
  readonly apiUrl: string
  readonly operatorUrl: string
  readonly operatorToken: string
  readonly witnessUrl: string
  readonly witnessToken: string
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
  const operatorToken = 'operator-token-of-the-tests-0123456789'

  const api = cleanup.use(
    await startApi(await ensureDatabase(postgres.url, 'pdm'), {
      PDM_OPERATOR_TOKENS: operatorToken,
      PDM_DNS_COMMIT_WAIT: '200ms',
      PDM_VALIDATION_ATTEMPTS: '10000',
      PDM_TERRAFORM_BINARY: terraform,
      PDM_DEPLOYMENTS_DIR: join(folder, 'deployments'),
      DNSPROVIDER_LOCAL_PORT: String(await freePort()),
      OBJECT_STORAGE_DOMAIN: 'localhost:1',
      PROVIDER_TOKEN_URLS: `hetzner=https://${REFUSED_ADDRESS}/`,
    }),
  )
  const witness = cleanup.use(await startLocalWitness(join(folder, 'witness'), { MAX_WAIT_SECONDS: '1' }))
  const services = cleanup.move()
  return {
    apiUrl: api.url,
    operatorUrl: api.operatorUrl ?? '',
    operatorToken,
    witnessUrl: witness.url,
    witnessToken: TOKEN,
    [Symbol.asyncDispose]: () => services.disposeAsync(),
  }
}

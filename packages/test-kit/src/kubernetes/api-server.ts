import { execFile } from 'node:child_process'
import { generateKeyPairSync } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { mkdtemp, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { freePort } from '@pool/dev/ports'
import { startServerProcess, waitUntilUp } from '@pool/dev/server-process'
import { type ProgramResult, run, toPathWithPrograms } from './programs.ts'

const { TEST_ASSET_KUBE_APISERVER: program, TEST_ASSET_ETCD: etcd, TEST_ASSET_CRDS: crds } = process.env

/** What is missing and how to get it; undefined: nothing. The first two are variables of envtest. */
export const missingApiServer: string | undefined =
  program && etcd && crds
    ? undefined
    : 'TEST_ASSET_KUBE_APISERVER, TEST_ASSET_ETCD and TEST_ASSET_CRDS (a folder with the CRDs of the Prometheus operator, CloudNativePG and the Gateway API) are not set, so no Kubernetes API server is tested: setup-envtest use 1.34'

const ADMIN_TOKEN = 'admin-token'

/** An entry of the audit log: https://kubernetes.io/docs/tasks/debug/debug-cluster/audit/ */
export interface AuditEvent {
  readonly verb: string
  readonly requestURI: string
  readonly user: { readonly username: string }
  readonly objectRef?: { readonly resource: string; readonly name?: string }
  readonly responseStatus: { readonly code: number }
}

export interface ApiServer {
  readonly kubectl: (args: readonly string[], input?: string) => Promise<ProgramResult>
  /** Runs helm with the token of a ServiceAccount. */
  readonly helmAs: (token: string, args: readonly string[]) => Promise<ProgramResult>
  /** Runs a script of bash with helm and kubectl on its PATH, as an administrator or with the token of a ServiceAccount. */
  readonly bash: (script: string, folder: string, token?: string) => Promise<ProgramResult>
  readonly readAudit: () => readonly AuditEvent[]
  readonly stop: () => Promise<void>
}

/** Starts a Kubernetes API server without controllers and without nodes, with the CRDs. */
export const startApiServer = async (): Promise<ApiServer> => {
  if (!program || !etcd || !crds) throw new Error(missingApiServer)
  const folder = await mkdtemp(join(tmpdir(), 'pool-api-server-'))
  const { privateKey, publicKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
  const write = async (name: string, text: string | Buffer) => {
    const path = join(folder, name)
    await writeFile(path, text)
    return path
  }
  const key = await write('accounts.key', privateKey.export({ type: 'pkcs8', format: 'pem' }))
  const publicFile = await write('accounts.pub', publicKey.export({ type: 'spki', format: 'pem' }))
  const tokens = await write('tokens.csv', `${ADMIN_TOKEN},admin,admin,system:masters\n`)
  const policy = await write(
    'policy.json',
    JSON.stringify({
      apiVersion: 'audit.k8s.io/v1',
      kind: 'Policy',
      omitStages: ['RequestReceived'],
      rules: [{ level: 'Metadata' }],
    }),
  )
  const audit = join(folder, 'audit.log')
  const [client, peer, port] = await Promise.all([freePort(), freePort(), freePort()])
  const store = `http://127.0.0.1:${client}`
  const database = startServerProcess({
    name: 'etcd',
    folder,
    removeOnExit: folder,
    command: [
      ...[etcd, '--data-dir', join(folder, 'etcd'), '--log-level', 'error', '--unsafe-no-fsync'],
      ...['--listen-client-urls', store, '--advertise-client-urls', store],
      ...['--listen-peer-urls', `http://127.0.0.1:${peer}`],
    ],
  })
  const server = startServerProcess({
    name: 'kube-apiserver',
    folder,
    command: [
      ...[program, '--etcd-servers', store, '--bind-address', '127.0.0.1', '--secure-port', String(port)],
      ...['--cert-dir', join(folder, 'certificates'), '--token-auth-file', tokens, '--authorization-mode', 'RBAC'],
      '--allow-privileged',
      ...[
        '--service-account-issuer',
        'https://kubernetes.default.svc',
        '--service-cluster-ip-range',
        '10.96.0.0/16,fd00:96::/112',
      ],
      ...['--service-account-key-file', publicFile, '--service-account-signing-key-file', key],
      ...['--audit-policy-file', policy, '--audit-log-path', audit],
    ],
  })
  const stop = async () => {
    await server.kill()
    await database.kill()
  }
  const toConfig = async (token: string): Promise<string> =>
    write(
      'kubeconfig',
      JSON.stringify({
        apiVersion: 'v1',
        kind: 'Config',
        clusters: [{ name: 'c', cluster: { server: `https://127.0.0.1:${port}`, 'insecure-skip-tls-verify': true } }],
        users: [{ name: 'u', user: { token } }],
        contexts: [{ name: 'x', context: { cluster: 'c', user: 'u', namespace: 'pool-allocation' } }],
        'current-context': 'x',
      }),
    )
  const runAs = async (tool: 'helm' | 'kubectl', token: string, args: readonly string[], input?: string) =>
    run(tool, args, {
      env: { KUBECONFIG: await toConfig(token), KUBECACHEDIR: join(folder, 'cache') },
      ...(input === undefined ? {} : { input }),
    })
  const kubectl: ApiServer['kubectl'] = (args, input) => runAs('kubectl', ADMIN_TOKEN, args, input)
  try {
    const isReady = async () => (await kubectl(['get', '--raw', '/readyz'])).stdout === 'ok'
    await waitUntilUp('the API server is ready', isReady, [database, server])
    const { code, stderr } = await kubectl(['apply', '--server-side', '--filename', crds])
    if (code !== 0) throw new Error(stderr)
    // kubectl wait fails on a CRD that has no conditions yet.
    const hasDefinitions = async () =>
      (await kubectl(['wait', '--for=condition=Established', 'crd', '--all', '--timeout=5s'])).code === 0
    await waitUntilUp('the CRDs are established', hasDefinitions, [database, server])
  } catch (error) {
    await stop()
    throw error
  }
  return {
    kubectl,
    helmAs: (token, args) => runAs('helm', token, args),
    bash: async (script, cwd, token = ADMIN_TOKEN) => {
      const env = { PATH: toPathWithPrograms(), HOME: folder, KUBECONFIG: await toConfig(token) }
      return new Promise(resolve => {
        execFile('bash', ['-euo', 'pipefail', '-c', script], { cwd, env }, (error, stdout, stderr) => {
          resolve({ code: error === null ? 0 : typeof error.code === 'number' ? error.code : -1, stdout, stderr })
        })
      })
    },
    readAudit: () =>
      readFileSync(audit, 'utf8')
        .split('\n')
        .filter(Boolean)
        .map(line => JSON.parse(line)),
    stop,
  }
}

import { execFile } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { get, type RequestOptions, request } from 'node:https'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { freePort, isListening } from '@pool/dev/ports'
import {
  findProgram,
  type RunningServer,
  ServerExitedError,
  startServerProcess,
  waitUntilUp,
} from '@pool/dev/server-process'
import { createCa } from './test-ca.ts'

export interface HttpsResponse {
  readonly status: number
  readonly text: string
}

/** Sends one request on a new connection. Rejects on connection errors. */
export const httpsCall = (options: RequestOptions, body?: string): Promise<HttpsResponse> =>
  new Promise((resolve, reject) => {
    const sent = request({ ...options, agent: false }, answer => {
      let text = ''
      answer
        .setEncoding('utf8')
        .on('data', part => {
          text += part
        })
        .on('end', () => resolve({ status: answer.statusCode ?? 0, text }))
    })
    sent.on('error', reject).end(body)
  })

/** Longer than any program needs on a busy machine; waiting for a lost monitor would take minutes. */
const COMMAND_TIMEOUT_MS = 90_000

const names = ['ceph-mon', 'ceph-osd', 'radosgw', 'radosgw-admin', 'ceph', 'ceph-authtool', 'monmaptool'] as const
export type CephProgram = (typeof names)[number]

/** A line with the missing programs and how to install them; undefined if all are installed. */
const toSkipReason = (missing: readonly string[]): string | undefined =>
  missing.length === 0
    ? undefined
    : `without a Ceph object gateway (${missing.join(', ')}): apt-get install --no-install-recommends ceph-mon ceph-osd radosgw`

export const missingGateway: string | undefined = toSkipReason(names.filter(name => findProgram(name) === undefined))

const findProgramPath = (name: CephProgram): string => {
  const path = findProgram(name)
  if (path === undefined) throw new Error(missingGateway)
  return path
}

export interface RunOptions {
  readonly env: NodeJS.ProcessEnv
  /** Kills the program. */
  readonly signal?: AbortSignal
}

/** Runs a program. An error has its output but never its arguments, which can contain a secret. */
const runProgram = (program: CephProgram, args: readonly string[], options: RunOptions): Promise<string> =>
  new Promise((resolve, reject) => {
    const limits = { timeout: COMMAND_TIMEOUT_MS, killSignal: 'SIGKILL' } as const
    execFile(findProgramPath(program), args, { ...options, ...limits }, (error, stdout, stderr) => {
      if (error === null) resolve(stdout)
      else reject(new Error(`${program} failed (${error.signal ?? error.code}):\n${stderr}`))
    })
  })

export interface CephPaths {
  readonly folder: string
  readonly clusterId: string
  readonly osdId: string
  readonly monitorPort: number
  readonly gatewayPort: number
}

/**
 * A cluster of one monitor, one object store in memory and one gateway, on loopback, configured for a fast start:
 * https://docs.ceph.com/en/pacific/rados/configuration/. It keeps nothing and tolerates no failure.
 */
const renderConfiguration = ({ folder, clusterId, osdId, monitorPort, gatewayPort }: CephPaths): string => `[global]
fsid = ${clusterId}
mon host = v2:127.0.0.1:${monitorPort}
public addr = 127.0.0.1
cluster addr = 127.0.0.1
ms bind ipv6 = false
ms bind msgr1 = false
# Report a port in use immediately instead of trying three times, 5 s apart.
ms bind retry count = 1

# Use only the directory, which an unprivileged user can write to.
keyring = ${folder}/keyring
run dir = ${folder}
admin socket =
mon data = ${folder}/mon
osd data = ${folder}/osd
rgw data = ${folder}/rgw
log file =
log to stderr = true
err to stderr = true
debug rocksdb = 0
mon cluster log file =

# By default, a proposal waits one second for others; a start needs a dozen proposals.
paxos propose interval = 0.05
mon tick interval = 1
mon data avail crit = 1
mon allow pool size one = true
mon max pg per osd = 10000
client mount timeout = 20

osd objectstore = memstore
osd uuid = ${osdId}
osd crush chooseleaf type = 0
osd pool default size = 1
osd pool default min size = 1
osd pool default pg num = 1
osd pool default pgp num = 1
osd pool default pg autoscale mode = off

rgw frontends = beast ssl_endpoint=127.0.0.1:${gatewayPort} ssl_certificate=${folder}/cert.pem ssl_private_key=${folder}/key.pem
rgw thread pool size = 8
rgw enable gc threads = false
rgw enable lc threads = false
rgw enable quota threads = false
rgw run sync thread = false
# Accept requests for any region: the storage provider has several.
rgw relaxed region enforcement = true
`

export interface ClusterOptions {
  /** A directory with only cert.pem and key.pem; removed by stop(), or when this process dies. */
  readonly folder: string
  readonly monitorPort: number
  readonly gatewayPort: number
  readonly isGatewayUp: () => Promise<boolean>
}

export interface Cluster {
  /** The environment with which Ceph programs find the cluster. */
  readonly env: NodeJS.ProcessEnv
  readonly stop: () => Promise<void>
}

/** cephx stays enabled: without it the gateway hangs on start. */
const createKeyring = async (keyring: string, env: NodeJS.ProcessEnv): Promise<void> => {
  const capabilities = (...caps: string[]) => caps.flatMap(cap => ['--cap', cap, 'allow *'])
  const add = (entity: string, ...caps: string[]) =>
    runProgram('ceph-authtool', [keyring, '--gen-key', '-n', entity, ...capabilities(...caps)], { env })
  await runProgram('ceph-authtool', ['--create-keyring', keyring], { env })
  await add('mon.', 'mon')
  await add('client.admin', 'mon', 'osd')
  await add('osd.0', 'mon', 'osd')
}

const startCluster = async (plan: ClusterOptions): Promise<Cluster> => {
  const { folder, monitorPort, gatewayPort, isGatewayUp } = plan
  const pathTo = (name: string) => join(folder, name)
  const clusterId = randomUUID()
  const osdId = randomUUID()
  const env = { PATH: process.env.PATH, CEPH_CONF: pathTo('ceph.conf') }
  await mkdir(pathTo('mon'))
  await mkdir(pathTo('osd'))
  await writeFile(pathTo('ceph.conf'), renderConfiguration({ folder, clusterId, osdId, monitorPort, gatewayPort }))
  await createKeyring(pathTo('keyring'), env)
  const address = `[v2:127.0.0.1:${monitorPort}]`
  await runProgram('monmaptool', ['--create', '--fsid', clusterId, '--addv', 'a', address, pathTo('monmap')], { env })
  await Promise.all([
    runProgram('ceph-mon', ['--mkfs', '-i', 'a', '--monmap', pathTo('monmap'), '--keyring', pathTo('keyring')], {
      env,
    }),
    runProgram('ceph-osd', ['--mkfs', '-i', '0', '--no-mon-config'], { env }),
  ])

  const servers: RunningServer[] = []
  const start = (name: string, command: readonly string[], removeOnExit?: string) =>
    servers.push(
      startServerProcess({ name, command, folder, env, ...(removeOnExit === undefined ? {} : { removeOnExit }) }),
    )
  const stop = async () => {
    await Promise.all(servers.map(server => server.kill()))
  }
  const aborted = new AbortController()
  try {
    // Only the monitor writes to the directory while it runs.
    start('ceph-mon', [findProgramPath('ceph-mon'), '-f', '-i', 'a'], folder)
    await waitUntilUp('the monitor listens', () => isListening(monitorPort), servers)
    // If another process has the port, this command gets no response.
    const registered = runProgram('ceph', ['osd', 'new', osdId, '0'], { env, signal: aborted.signal })
    await Promise.race([registered, ...servers.map(({ failed }) => failed)])
    start('ceph-osd', [findProgramPath('ceph-osd'), '-f', '-i', '0'])
    start('radosgw', [findProgramPath('radosgw'), '-f', '-n', 'client.admin'])
    await waitUntilUp('the gateway responds', isGatewayUp, servers)
  } catch (error) {
    aborted.abort()
    await stop()
    throw error
  }
  return { env, stop }
}

const HOST = '127.0.0.1'
const MAX_ATTEMPTS = 5

export interface KeyPair {
  readonly accessKey: string
  readonly secretKey: string
}

export interface GatewayUser {
  /** The owner id in responses. */
  readonly id: string
  /** Suspends the user: later requests fail with UserSuspended. */
  readonly suspend: () => Promise<void>
}

/** A Ceph object gateway with no users and no buckets, over TLS. */
export interface Gateway {
  readonly host: string
  /** TLS. */
  readonly port: number
  /** PEM of the CA that signed its certificate. */
  readonly ca: string
  /** The same as a file; gone after stop(). */
  readonly caFile: string
  /** The keys are visible in the arguments of radosgw-admin: use test keys only. */
  readonly addUser: (keys: KeyPair) => Promise<GatewayUser>
  /** Stops all processes and removes the directory. Both also happen when the starting process dies. */
  readonly stop: () => Promise<void>
}

export interface GatewayOptions {
  /** DNS names of its certificate, wildcards allowed, in addition to 127.0.0.1. */
  readonly names: readonly string[]
  /** Called alternately for the ports of gateway and monitor. Default: a free port. */
  readonly findPort?: () => Promise<number>
}

/** Whether the server responds with a certificate of this CA: another process may have the port. */
const isUp = (port: number, ca: string): Promise<boolean> =>
  new Promise(resolve => {
    get({ host: HOST, port, ca, agent: false, timeout: 1_000 }, answer => {
      answer.resume().on('end', () => resolve(answer.statusCode === 200))
    })
      .on('timeout', () => resolve(false))
      .on('error', () => resolve(false))
  })

/**
 * Starts a gateway on its own ports; several may run at the same time. If a server exits immediately, it retries with other
 * ports: another process may have bound the port, and Ceph servers can exit before they log that.
 */
export const startGateway = async ({ names, findPort = freePort }: GatewayOptions): Promise<Gateway> => {
  const authority = await createCa('test CA of the object gateway')
  const { key, cert } = await authority.issue({ names, addresses: [HOST] })
  for (let attempt = 1; ; attempt += 1) {
    const folder = await mkdtemp(join(tmpdir(), 'ceph-'))
    const caFile = join(folder, 'ca.pem')
    const remove = () => rm(folder, { recursive: true, force: true })
    try {
      await Promise.all([
        writeFile(join(folder, 'key.pem'), key, { mode: 0o600 }),
        writeFile(join(folder, 'cert.pem'), cert),
        writeFile(caFile, authority.cert),
      ])
      const port = await findPort()
      const monitorPort = await findPort()
      const isGatewayUp = () => isUp(port, authority.cert)
      const cluster = await startCluster({ folder, monitorPort, gatewayPort: port, isGatewayUp })
      const stop = () => cluster.stop().finally(remove)
      return { host: HOST, port, ca: authority.cert, caFile, addUser: createUserFactory(cluster), stop }
    } catch (error) {
      await remove()
      if (!(error instanceof ServerExitedError) || attempt === MAX_ATTEMPTS) throw error
    }
  }
}

const createUserFactory = ({ env }: Cluster) => {
  let added = 0
  return async ({ accessKey, secretKey }: KeyPair): Promise<GatewayUser> => {
    added += 1
    const id = `user-${added}`
    const user = ['--uid', id, '--display-name', id]
    await runProgram(
      'radosgw-admin',
      ['user', 'create', ...user, '--access-key', accessKey, '--secret-key', secretKey],
      {
        env,
      },
    )
    const suspend = async () => {
      await runProgram('radosgw-admin', ['user', 'suspend', '--uid', id], { env })
    }
    return { id, suspend }
  }
}

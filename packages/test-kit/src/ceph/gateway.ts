import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { get } from 'node:https'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { freePort } from '@pool/dev/ports'
import { ServerExitedError } from '@pool/dev/server-process'
import { type Cluster, startCluster } from './cluster.ts'
import { runProgram } from './programs.ts'
import { createCa } from './test-ca.ts'

export { missingGateway } from './programs.ts'

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

import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { get } from 'node:https'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { freePort } from '@pool/dev-server/ports'
import { ServerExitedError } from '@pool/dev-server/server-process'
import { type Cluster, startCluster } from './cluster.ts'
import { run } from './programs.ts'
import { makeCa } from './test-ca.ts'

export { lacksGateway } from './programs.ts'

const HOST = '127.0.0.1'
const PORT_TRIES = 5

export interface KeyPair {
  readonly accessKey: string
  readonly secretKey: string
}

export interface GatewayUser {
  /** The owner's id in answers. */
  readonly id: string
  /** From its return on, requests of the user are refused with UserSuspended. */
  readonly suspend: () => Promise<void>
}

/** A Ceph object gateway with no users and no buckets, over TLS. */
export interface Gateway {
  readonly host: string
  /** TLS. */
  readonly port: number
  /** PEM of the authority that signed its certificate. */
  readonly ca: string
  /** The same as a file; gone after stop(). */
  readonly caFile: string
  /** The keys pass through the arguments of radosgw-admin: they are for tests, like the gateway. */
  readonly addUser: (keys: KeyPair) => Promise<GatewayUser>
  /** Leaves no process and no folder. These go too when the process that started it dies, in whatever way. */
  readonly stop: () => Promise<void>
}

export interface GatewayOptions {
  /** DNS names that its certificate is for, wildcards allowed. It is for 127.0.0.1 in any case. */
  readonly names: readonly string[]
  /** Where to listen, of the gateway and of the monitor by turns; any free port if not given. */
  readonly findPort?: () => Promise<number>
}

/** Whether it answers with a certificate of that authority: another process may have the port. */
const isUp = (port: number, ca: string): Promise<boolean> =>
  new Promise(resolve => {
    get({ host: HOST, port, ca, agent: false, timeout: 1_000 }, answer => {
      answer.resume().on('end', () => resolve(answer.statusCode === 200))
    })
      .on('timeout', () => resolve(false))
      .on('error', () => resolve(false))
  })

/**
 * Starts a gateway of its own, on ports of its own; several may run at once. When a server of it ends at once, other ports
 * are tried: another process may have taken the port since it was free, and Ceph's servers can end before they said so.
 */
export const startGateway = async ({ names, findPort = freePort }: GatewayOptions): Promise<Gateway> => {
  const authority = await makeCa('test CA of the object gateway')
  const { key, cert } = await authority.issue({ names, addresses: [HOST] })
  for (let attempt = 1; ; attempt += 1) {
    const folder = await mkdtemp(join(tmpdir(), 'test-ceph-'))
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
      return { host: HOST, port, ca: authority.cert, caFile, addUser: adderOf(cluster), stop }
    } catch (error) {
      await remove()
      if (!(error instanceof ServerExitedError) || attempt === PORT_TRIES) throw error
    }
  }
}

const adderOf = ({ env }: Cluster) => {
  let added = 0
  return async ({ accessKey, secretKey }: KeyPair): Promise<GatewayUser> => {
    added += 1
    const id = `user-${added}`
    const user = ['--uid', id, '--display-name', id]
    await run('radosgw-admin', ['user', 'create', ...user, '--access-key', accessKey, '--secret-key', secretKey], {
      env,
    })
    const suspend = async () => {
      await run('radosgw-admin', ['user', 'suspend', '--uid', id], { env })
    }
    return { id, suspend }
  }
}

import { randomUUID } from 'node:crypto'
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { isListening } from '@pool/dev-server/ports'
import { type RunningServer, startServerProcess, waitUntilUp } from '@pool/dev-server/server-process'
import { configuration } from './configuration.ts'
import { pathOf, run } from './programs.ts'

export interface ClusterPlan {
  /** Empty, with cert.pem and key.pem; removed by stop(), or when this process dies. */
  readonly folder: string
  readonly monitorPort: number
  readonly gatewayPort: number
  readonly isGatewayUp: () => Promise<boolean>
}

export interface Cluster {
  /** What the programs of the cluster find it by. */
  readonly env: NodeJS.ProcessEnv
  readonly stop: () => Promise<void>
}

/** cephx stays on: without it the gateway hangs at its start. */
const makeKeys = async (keyring: string, env: NodeJS.ProcessEnv): Promise<void> => {
  const may = (...caps: string[]) => caps.flatMap(cap => ['--cap', cap, 'allow *'])
  const add = (entity: string, ...caps: string[]) =>
    run('ceph-authtool', [keyring, '--gen-key', '-n', entity, ...may(...caps)], { env })
  await run('ceph-authtool', ['--create-keyring', keyring], { env })
  await add('mon.', 'mon')
  await add('client.admin', 'mon', 'osd')
  await add('osd.0', 'mon', 'osd')
}

export const startCluster = async (plan: ClusterPlan): Promise<Cluster> => {
  const { folder, monitorPort, gatewayPort, isGatewayUp } = plan
  const at = (name: string) => join(folder, name)
  const clusterId = randomUUID()
  const osdId = randomUUID()
  const env = { PATH: process.env.PATH, CEPH_CONF: at('ceph.conf') }
  await mkdir(at('mon'))
  await mkdir(at('osd'))
  await writeFile(at('ceph.conf'), configuration({ folder, clusterId, osdId, monitorPort, gatewayPort }))
  await makeKeys(at('keyring'), env)
  const address = `[v2:127.0.0.1:${monitorPort}]`
  await run('monmaptool', ['--create', '--fsid', clusterId, '--addv', 'a', address, at('monmap')], { env })
  await Promise.all([
    run('ceph-mon', ['--mkfs', '-i', 'a', '--monmap', at('monmap'), '--keyring', at('keyring')], { env }),
    run('ceph-osd', ['--mkfs', '-i', '0', '--no-mon-config'], { env }),
  ])

  const servers: RunningServer[] = []
  const start = (name: string, command: readonly string[], leaves?: string) =>
    servers.push(
      startServerProcess({ name, command, folder, env, ...(leaves === undefined ? {} : { removeOnExit: leaves }) }),
    )
  const stop = async () => {
    await Promise.all(servers.map(server => server.kill()))
  }
  const over = new AbortController()
  try {
    // The monitor alone writes to the folder while it runs.
    start('ceph-mon', [pathOf('ceph-mon'), '-f', '-i', 'a'], folder)
    await waitUntilUp('the monitor listens', () => isListening(monitorPort), servers)
    // Where another process took the port, nothing answers this.
    const told = run('ceph', ['osd', 'new', osdId, '0'], { env, signal: over.signal })
    await Promise.race([told, ...servers.map(({ failed }) => failed)])
    start('ceph-osd', [pathOf('ceph-osd'), '-f', '-i', '0'])
    start('radosgw', [pathOf('radosgw'), '-f', '-n', 'client.admin'])
    await waitUntilUp('the gateway answers', isGatewayUp, servers)
  } catch (error) {
    over.abort()
    await stop()
    throw error
  }
  return { env, stop }
}

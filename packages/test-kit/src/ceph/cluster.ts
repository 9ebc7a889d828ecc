import { randomUUID } from 'node:crypto'
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { isListening } from '@pool/dev/ports'
import { type RunningServer, startServerProcess, waitUntilUp } from '@pool/dev/server-process'
import { renderConfiguration } from './configuration.ts'
import { findProgramPath, runProgram } from './programs.ts'

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

export const startCluster = async (plan: ClusterOptions): Promise<Cluster> => {
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

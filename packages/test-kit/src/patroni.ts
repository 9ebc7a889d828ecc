import { chownSync, globSync, readFileSync, writeFileSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { freePort } from '@pool/dev/ports'
import { findProgram } from '@pool/dev/server-process'
import { until } from './poll.ts'
import { freezeFamily, waitForExit } from './processes.ts'
import { Program } from './program.ts'

const [postgresFolder] = globSync('/usr/lib/postgresql/*/bin').sort().reverse()
const missing = ['patroni', 'etcd', 'setpriv'].filter(program => !findProgram(program))

/** See `shouldSkip`. */
export const missingPatroni =
  missing.length === 0 && postgresFolder
    ? undefined
    : `${[...missing, ...(postgresFolder ? [] : ['PostgreSQL'])].join(', ')}: not installed, its tests are skipped: apt-get install patroni etcd-server postgresql`

const NOBODY_ID = 65_534
const PASSWORD = 'patroni'
const isRoot = process.getuid?.() === 0

interface PatroniNode {
  readonly name: string
  readonly port: number
  readonly restUrl: string
  readonly folder: string
  patroni: Program
}

/** The postmaster; Patroni is not its parent. */
const readPostmaster = ({ folder }: PatroniNode): number =>
  Number(readFileSync(join(folder, 'postmaster.pid'), 'utf8').split('\n')[0])

const hasRole = ({ restUrl }: PatroniNode, role: 'primary' | 'synchronous'): Promise<boolean> =>
  fetch(`${restUrl}/${role}`, { signal: AbortSignal.timeout(1_000) }).then(
    ({ status }) => status === 200,
    () => false,
  )

export type PatroniPair = Awaited<ReturnType<typeof startPatroniPair>>

/** A primary and a synchronous standby under Patroni, with its default times, and etcd. `cleanup` ends and removes all of it. */
export const startPatroniPair = async (cleanup: AsyncDisposableStack) => {
  const root = await mkdtemp(join(tmpdir(), 'pool-patroni-'))
  cleanup.defer(() => rm(root, { recursive: true, force: true }))
  // Postgres does not run as root.
  const own = (path: string) => isRoot && chownSync(path, NOBODY_ID, NOBODY_ID)
  own(root)
  const run = (program: string, ...args: string[]) => {
    const user = isRoot ? [`--reuid=${NOBODY_ID}`, `--regid=${NOBODY_ID}`, '--clear-groups'] : []
    const command = { command: 'setpriv', args: [...user, findProgram(program) ?? program, ...args] }
    return new Program({ ...command, cwd: root, env: { HOME: root } })
  }
  const [client = '', peer = ''] = [await freePort(), await freePort()].map(port => `http://127.0.0.1:${port}`)
  const urls = ['--listen-client-urls', client, '--advertise-client-urls', client, '--listen-peer-urls', peer]
  cleanup.use(run('etcd', '--data-dir', join(root, 'etcd'), ...urls))

  const login = (username: string) => ({ username, password: PASSWORD })
  const start = (name: string) => run('patroni', join(root, `${name}.json`))
  const addNode = async (name: string): Promise<PatroniNode> => {
    const [port, restPort, file] = [await freePort(), await freePort(), join(root, `${name}.json`)]
    const [server, rest, folder] = [`127.0.0.1:${port}`, `127.0.0.1:${restPort}`, join(root, name)]
    const dcs = { synchronous_mode: true, postgresql: { use_pg_rewind: true } }
    const settings = {
      ...{
        scope: 'pair',
        name,
        restapi: { listen: rest, connect_address: rest },
        etcd3: { host: new URL(client).host },
      },
      bootstrap: { dcs, initdb: [{ encoding: 'UTF8' }, 'data-checksums'] },
      postgresql: {
        ...{ listen: server, connect_address: server, data_dir: folder, bin_dir: postgresFolder },
        pgpass: join(root, `pgpass-${name}`),
        authentication: { superuser: login('postgres'), replication: login('replicator'), rewind: login('rewinder') },
        parameters: { unix_socket_directories: root },
        pg_hba: [
          'local all all trust',
          ...['replication', 'all'].map(database => `host ${database} all 127.0.0.1/32 md5`),
        ],
      },
    }
    // JSON is YAML.
    writeFileSync(file, JSON.stringify(settings))
    own(file)
    const node: PatroniNode = { name, port, restUrl: `http://${rest}`, folder, patroni: start(name) }
    cleanup.defer(async () => {
      node.patroni.child.kill('SIGKILL')
      const postmaster = readPostmaster(node)
      // It may be frozen.
      for (const signal of ['SIGQUIT', 'SIGCONT']) process.kill(postmaster, signal)
      await waitForExit(postmaster, 60_000)
    })
    return node
  }
  const findPrimary = () =>
    until('a server leads', async () => {
      for (const node of nodes) if (await hasRole(node, 'primary')) return node
      return undefined
    })
  const nodes = [await addNode('a'), await addNode('b')] as const
  const getOther = (node: PatroniNode) => (node === nodes[0] ? nodes[1] : nodes[0])

  return {
    /** Connection string of the database `postgres` that names both servers, the first one first. */
    url: `postgres://postgres:${PASSWORD}@${nodes.map(({ port }) => `127.0.0.1:${port}`).join()}/postgres`,
    findPrimary,
    /** Waits until the other server is the synchronous standby. */
    async untilReplicated() {
      const standby = getOther(await findPrimary())
      await until('the standby is synchronous', () => hasRole(standby, 'synchronous'), 300_000)
    },
    async switchOver() {
      const primary = await findPrimary()
      const body = JSON.stringify({ leader: primary.name, candidate: getOther(primary).name })
      const { status } = await fetch(`${primary.restUrl}/switchover`, { method: 'POST', body })
      if (status !== 200) throw new Error(`Patroni answered ${status} to a switchover`)
      return () => {}
    },
    /** Ends Patroni and its server at once. Returns what starts Patroni again. */
    async crash() {
      const primary = await findPrimary()
      primary.patroni.child.kill('SIGKILL')
      process.kill(readPostmaster(primary), 'SIGQUIT')
      return () => {
        primary.patroni = start(primary.name)
      }
    },
    /** Stops all processes of the primary: its connections stay open. Returns what continues them. */
    async freeze() {
      const primary = await findPrimary()
      const thaw = [primary.patroni.child.pid ?? 0, readPostmaster(primary)].map(freezeFamily)
      return () => {
        for (const one of thaw) one()
      }
    },
  }
}

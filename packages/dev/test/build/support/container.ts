import { execFile, spawn } from 'node:child_process'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer, request } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { promisify } from 'node:util'
import type { Image } from './images.ts'

export interface ContainerOptions {
  readonly image: Image
  readonly env: Readonly<Record<string, string>>
  /** Instead of the command of the image. */
  readonly command?: readonly string[]
  /** Folders of this machine that the container can write to, by their path in the container. */
  readonly volumes?: Readonly<Record<string, string>>
}

export interface Container extends AsyncDisposable {
  /** Every line of its output so far. */
  readonly lines: readonly string[]
  /** The exit code of its first process. */
  readonly exited: Promise<number | null>
  /** Of its first process, on this machine. */
  pid(): Promise<number>
  /** Sends a signal to its first process, as a container runtime does at a stop. */
  signal(name: string): Promise<void>
  /** Runs a command in it, as its user. */
  exec(...command: string[]): Promise<{ readonly code: number; readonly output: string }>
}

/**
 * crun does not start where both versions of control groups are mounted. It needs neither here, so it gets a mount namespace
 * without the second one.
 */
const CRUN = ['--mount', 'sh', '-c', 'umount /sys/fs/cgroup/unified 2>/dev/null; exec crun "$@"', 'sh']

const mounts = [
  { destination: '/proc', type: 'proc', source: 'proc' },
  { destination: '/dev', type: 'tmpfs', source: 'tmpfs', options: ['nosuid', 'mode=755', 'size=65536k'] },
  { destination: '/tmp', type: 'tmpfs', source: 'tmpfs', options: ['nosuid', 'nodev', 'mode=1777', 'size=64m'] },
]

/** The configuration of the OCI runtime specification: a read-only root, no capability, the network of this machine. */
const toRuntimeConfig = ({ image, env, command, volumes = {} }: ContainerOptions): object => {
  const { Cmd, Entrypoint, Env, User, WorkingDir } = image.config
  const [uid, gid] = User.split(':').map(Number)
  const binds = Object.entries(volumes).map(([destination, source]) => ({
    destination,
    type: 'bind',
    source,
    options: ['rbind', 'rw', 'nosuid', 'nodev'],
  }))
  return {
    ociVersion: '1.0.2',
    process: {
      user: { uid, gid },
      args: [...Entrypoint, ...(command ?? Cmd)],
      env: [...Env, ...Object.entries(env).map(([name, value]) => `${name}=${value}`)],
      cwd: WorkingDir,
      noNewPrivileges: true,
      capabilities: { bounding: [], effective: [], permitted: [] },
    },
    root: { path: image.rootfs, readonly: true },
    mounts: [...mounts, ...binds],
    linux: { namespaces: ['pid', 'ipc', 'uts', 'mount'].map(type => ({ type })) },
  }
}

let count = 0

/** Starts a container of an image with crun. */
export const startContainer = async (options: ContainerOptions): Promise<Container> => {
  const folder = await mkdtemp(join(tmpdir(), 'container-'))
  await mkdir(join(folder, 'state'))
  await writeFile(join(folder, 'config.json'), JSON.stringify(toRuntimeConfig(options)))
  count += 1
  const id = `pool-allocation-${process.pid}-${count}`
  const crun = [...CRUN, '--root', join(folder, 'state'), '--cgroup-manager', 'disabled']
  const call = (...args: string[]) => promisify(execFile)('unshare', [...crun, ...args])

  const child = spawn('unshare', [...crun, 'run', '--bundle', folder, id], { stdio: ['ignore', 'pipe', 'pipe'] })
  const lines: string[] = []
  for (const stream of [child.stdout, child.stderr]) createInterface(stream).on('line', line => lines.push(line))
  const exited = new Promise<number | null>((resolve, reject) => {
    child.once('error', reject)
    child.once('close', resolve)
  })
  exited.catch(() => {})
  return {
    lines,
    exited,
    pid: async () => JSON.parse((await call('state', id)).stdout).pid,
    signal: async name => void (await call('kill', id, name)),
    exec: async (...command) => {
      const {
        code = 0,
        stdout,
        stderr,
      } = await call('exec', '--user', options.image.config.User, id, ...command).catch(error => error)
      return { code, output: stdout + stderr }
    },
    async [Symbol.asyncDispose]() {
      await call('delete', '--force', id).catch(() => {})
      await exited
      await rm(folder, { recursive: true, force: true })
    },
  }
}

export interface Balancer extends AsyncDisposable {
  readonly port: number
  /** The ports that passed their last check. */
  ready(): readonly number[]
}

const CHECK_INTERVAL_MS = 50

const isReady = (port: number): Promise<boolean> =>
  fetch(`http://127.0.0.1:${port}/readyz`).then(
    ({ status }) => status === 200,
    () => false,
  )

/**
 * An HTTP proxy that sends each request to the next backend that is ready. As load balancers do, it tries another one if the
 * connection is refused, and only then.
 */
export const startBalancer = async (backends: readonly number[]): Promise<Balancer> => {
  let ready: readonly number[] = []
  let next = 0
  const check = async (): Promise<void> => {
    const results = await Promise.all(backends.map(isReady))
    ready = backends.filter((_, index) => results[index])
  }
  const server = createServer(async (incoming, outgoing) => {
    const chunks: Buffer[] = []
    for await (const chunk of incoming) chunks.push(chunk)
    const send = (candidates: readonly number[]): void => {
      const [port, ...others] = candidates
      if (port === undefined) return void outgoing.writeHead(503).end()
      const { method, url: path, headers } = incoming
      const forwarded = request({ host: '127.0.0.1', port, method, path, headers, agent: false }, response => {
        outgoing.writeHead(response.statusCode ?? 502, response.headers)
        response.pipe(outgoing)
      })
      forwarded.on('error', (error: NodeJS.ErrnoException) => {
        if (error.code === 'ECONNREFUSED') return send(others)
        return outgoing.headersSent ? outgoing.destroy() : void outgoing.writeHead(502).end()
      })
      forwarded.end(Buffer.concat(chunks))
    }
    next += 1
    const first = next % Math.max(1, ready.length)
    send([...ready.slice(first), ...ready.slice(0, first)])
  })
  await check()
  const timer = setInterval(() => void check(), CHECK_INTERVAL_MS)
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  return {
    port: (server.address() as AddressInfo).port,
    ready: () => ready,
    async [Symbol.asyncDispose]() {
      clearInterval(timer)
      server.closeAllConnections()
      await new Promise(resolve => server.close(resolve))
    },
  }
}

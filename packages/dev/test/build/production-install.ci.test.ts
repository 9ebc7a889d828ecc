import { execFile, spawn } from 'node:child_process'
import { mkdtemp, readdir, rm, symlink } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { until } from '@pool/test-kit/poll.ts'
import { isRunning, listProcessTree } from '@pool/test-kit/processes.ts'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { ensureDatabase, startPostgres } from '../../src/postgres.ts'

const run = promisify(execFile)
const root = fileURLToPath(new URL('../../../..', import.meta.url))
/** A command that needs longer is not slow but stuck. */
const STUCK_MS = 240_000

/** A clone with the packages of production only, and Node 24 on the PATH. */
describe('a production install', () => {
  const cleanup = new AsyncDisposableStack()
  let clone: string
  let env: NodeJS.ProcessEnv
  /** Of the install, before anything ran from it. */
  let installed: { readonly megabytes: number; readonly packages: readonly string[] }
  const listPackages = async () => (await readdir(join(clone, 'node_modules/.pnpm'))).toSorted()

  beforeAll(async () => {
    const folder = await mkdtemp(join(tmpdir(), 'production-'))
    cleanup.defer(() => rm(folder, { recursive: true, force: true }))
    clone = join(folder, 'clone')
    await run('git', ['clone', '--quiet', '--no-hardlinks', root, clone])
    await symlink(process.execPath, join(folder, 'node'))
    // The rest is the configuration of npm. By default, a script of pnpm first installs what a production install leaves out.
    const pnpmSettings = { pnpm_config_verify_deps_before_run: 'false' }
    env = { ...process.env, ...pnpmSettings, NODE_OPTIONS: '', PATH: `${folder}:${process.env.PATH}` }
    const filters = ['allocation-api...', 'lease-witness...'].flatMap(app => ['--filter-prod', app])
    await run('npx', ['-y', 'pnpm@12', 'install', '--prod', '--frozen-lockfile', ...filters], { cwd: clone, env })
    // The sum of the file sizes: the space on disk depends on hard links and on the file system.
    const { stdout } = await run('du', ['-sml', '--apparent-size', 'node_modules'], { cwd: clone })
    installed = { megabytes: Number.parseInt(stdout, 10), packages: await listPackages() }
    const postgres = await startPostgres({ dataDir: join(folder, 'postgres'), fsync: false })
    cleanup.defer(async () => void (await postgres.stop('immediate')))
    env.PDM_DATABASE_URL = await ensureDatabase(postgres.url, 'api')
    env.WITNESS_DATABASE_URL = await ensureDatabase(postgres.url, 'witness')
  }, 600_000)
  afterAll(() => cleanup.disposeAsync(), 60_000)

  /** Starts a command in the clone, in a process group of its own, and waits until its service is ready. */
  const start = async (file: string, args: readonly string[], variables: Readonly<Record<string, string>>) => {
    const child = spawn(file, args, {
      cwd: clone,
      env: { ...env, PORT: '0', ...variables },
      detached: true,
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    const group = child.pid ?? 0
    cleanup.defer(async () => {
      for (const pid of listProcessTree(group)) process.kill(pid, 'SIGKILL')
    })
    const lines: string[] = []
    for (const stream of [child.stdout, child.stderr]) createInterface(stream).on('line', line => lines.push(line))
    const exited = new Promise<number | null>(resolve => child.once('close', resolve))
    const port = await until(
      'the service is ready',
      () => {
        if (child.exitCode !== null) throw new Error(lines.join('\n'))
        const line = lines.find(text => text.includes('"msg":"ready"'))
        return line && Number(JSON.parse(line).port)
      },
      STUCK_MS,
    )
    return { port, group, lines, exited }
  }

  test.each([
    ['allocation-api', 'start', { DNSPROVIDER_KIND: 'local' }, '/readyz'],
    ['lease-witness', 'start:postgres', { BEARER_TOKENS_CSV: 'token-of-region-a-0123456789abcdef' }, '/healthz'],
  ] as const)('npx pnpm runs %s; a SIGTERM to its processes stops it', async (app, script, variables, path) => {
    const pnpm = ['-y', 'pnpm@12', '--filter', app, script]
    const { port, group, lines } = await start('npx', pnpm, variables)
    expect((await fetch(`http://127.0.0.1:${port}${path}`)).status).toBe(200)
    // As systemd and a terminal do. npx does not pass a signal on to its children.
    const processes = listProcessTree(group)
    process.kill(-group, 'SIGTERM')
    await until(
      'the service logs that it stopped',
      () => lines.some(line => line.includes('"msg":"stopped"')),
      STUCK_MS,
    )
    await until('every process has ended', () => !processes.some(isRunning), STUCK_MS)
  })

  test('node runs the file of the documentation; SIGTERM stops it with exit code 0', async () => {
    const args = ['apps/allocation-api/src/main.ts']
    const { port, group, exited } = await start('node', args, { DNSPROVIDER_KIND: 'local' })
    expect((await fetch(`http://127.0.0.1:${port}/readyz`)).status).toBe(200)
    process.kill(group, 'SIGTERM')
    expect(await exited).toBe(0)
  })

  test('no command has installed anything else', async () => {
    expect(await listPackages()).toEqual(installed.packages)
  })
})

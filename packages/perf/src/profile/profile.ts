import { execFile } from 'node:child_process'
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import type { Environment } from '../bench/environment/environment.ts'
import { insertPool, POOL, reserveInSql } from '../bench/environment/seed.ts'
import { runClosedLoop } from '../bench/load/closed-loop.ts'
import { readList } from '../bench/load/stream-reader.ts'
import type { Target } from '../bench/load/target.ts'
import {
  acquireAll,
  createGetTarget,
  createRenewTarget,
  LeaseClient,
  waitForCopies,
} from '../bench/sections/lease-client.ts'
import {
  commitOverHttp,
  createCheckWorkload,
  createCommitWorkload,
  createHttpTarget,
  createNotFoundWorkload,
  createReleaseWorkload,
  createReserveWorkload,
  type Workload,
} from '../bench/workloads.ts'
import { progress } from '../shared/cli.ts'
import { type Machine, machineText } from '../shared/machine.ts'
import { left, right, tableText } from '../shared/table.ts'
import { type Frame, findLargestCosts, toTree } from './cpu-profile.ts'
import { toFlameGraph } from './flame-graph.ts'
import { createNodeProfiler, createWorkerdProfiler, type Profiler, toProfiledEnv } from './profilers.ts'

const LEASE_USERS = 16
const LEASE_SLOTS = 100
const LIST_ROWS = 100_000
const LARGEST = 10

interface Context {
  readonly environment: Environment
  readonly seconds: number
  /** Clients of the API. */
  readonly users: number
  /** Stops the services at the end of the path. */
  readonly stack: AsyncDisposableStack
}

interface Subject {
  readonly profiler: Profiler
  readonly run: (seconds: number) => Promise<void>
}

interface ProfiledPath {
  readonly name: string
  /** The request, and how many clients send it. */
  readonly title: (users: number) => string
  readonly needs: 'postgres' | 'workerd'
  readonly start: (context: Context) => Promise<Subject>
}

const runTarget =
  (target: Target, users: number) =>
  async (seconds: number): Promise<void> => {
    await target.prepare?.()
    using opened = await target.open(users)
    const { problems } = await runClosedLoop(opened.users, seconds)
    for (const [problem, count] of problems) throw new Error(`${count} × ${problem}`)
  }

const apiPath = <Item>(
  name: string,
  title: string,
  createWorkload: (seed: ReturnType<typeof reserveInSql>, port: number, seconds: number) => Promise<Workload<Item>>,
): ProfiledPath => ({
  name,
  title: users => `${title}, ${users} ${users === 1 ? 'client' : 'clients'}`,
  needs: 'postgres',
  async start({ environment, seconds, users, stack }) {
    const database = stack.use(await environment.createSchema())
    const file = join(environment.folder, `${name}.cpuprofile`)
    const { port, pid } = stack.use(await environment.startApi(database.url, toProfiledEnv(file)))
    const workload = await createWorkload(reserveInSql(database.sql), port, seconds)
    return {
      profiler: createNodeProfiler(pid, file),
      run: runTarget(createHttpTarget(name, port, workload), users),
    }
  },
})

const listPath: ProfiledPath = {
  name: 'list',
  title: () => `GET list of ${LIST_ROWS} names, one client`,
  needs: 'postgres',
  async start({ environment, stack }) {
    const database = stack.use(await environment.createSchema())
    await insertPool(database.sql, LIST_ROWS)
    const file = join(environment.folder, 'list.cpuprofile')
    const { port, pid } = stack.use(await environment.startApi(database.url, toProfiledEnv(file)))
    return {
      profiler: createNodeProfiler(pid, file),
      async run(seconds) {
        const until = performance.now() + seconds * 1_000
        do {
          const { rows } = await readList(`http://127.0.0.1:${port}/api/v1/pool/${POOL}/list`)
          if (rows !== LIST_ROWS) throw new Error(`a list of ${rows} rows`)
        } while (performance.now() < until)
      },
    }
  },
}

const leasePath = (name: string, title: string, createTarget: typeof createGetTarget): ProfiledPath => ({
  name,
  title: () => `${title}, ${LEASE_USERS} clients on ${LEASE_SLOTS} slots`,
  needs: 'workerd',
  async start({ environment, stack }) {
    const { port, inspectorPort } = stack.use(await environment.startProfiledWitness())
    const client = new LeaseClient(name, LEASE_SLOTS)
    await acquireAll(port, client)
    await waitForCopies(port, client)
    return {
      profiler: await createWorkerdProfiler(inspectorPort),
      run: runTarget(createTarget(name, port, client), LEASE_USERS),
    }
  },
})

export const profiledPaths: readonly ProfiledPath[] = [
  apiPath('not-found', 'GET of a path without a route', async () => createNotFoundWorkload()),
  apiPath('check', 'GET check', reserve => createCheckWorkload(reserve)),
  apiPath('reserve', 'POST reserve', async () => createReserveWorkload()),
  apiPath('commit', 'POST commit', async (reserve, _, seconds) => createCommitWorkload(reserve, seconds)),
  apiPath('release', 'DELETE release', async (reserve, port, seconds) =>
    createReleaseWorkload(reserve, commitOverHttp(port), seconds),
  ),
  listPath,
  leasePath('lease-get', 'GET of a lease', createGetTarget),
  leasePath('lease-put', 'PUT that renews a lease', createRenewTarget),
]

export const pathNames: readonly string[] = profiledPaths.map(({ name }) => name)

export interface ProfileOptions {
  readonly paths: readonly string[]
  readonly seconds: number
  /** Clients of the API. */
  readonly users: number
  /** Where the graphs and the table are written. */
  readonly out: string
}

export const usesPostgres = ({ paths }: ProfileOptions): boolean =>
  profiledPaths.some(({ name, needs }) => paths.includes(name) && needs === 'postgres')

const run = promisify(execFile)
/** Without a repository, as in an archive of the sources, it is unknown. */
const readCommit = (): Promise<string> =>
  run('git', ['describe', '--always', '--dirty'], { cwd: import.meta.dirname }).then(
    ({ stdout }) => stdout.trim(),
    () => 'unknown',
  )

const INTRODUCTION = [
  'Written by `pnpm run profile`: V8 takes a sample of the busy service every 0.2 ms. Each graph shows callers below callees; its',
  'frames have the share of their time in a tooltip. Orange is this project, green a dependency, blue Node, grey V8 and native code.',
  'The tables have the functions with the largest time of their own, under any caller, as a share of the time in which the process',
  'did not wait. `(program)` is native code, most of it system calls of sockets and the log.',
].join('\n')

const toSection = (name: string, title: string, tree: Frame): string =>
  [
    `## ${name}: ${title}`,
    `![flame graph of ${name}](${name}.svg)`,
    tableText({
      columns: [left('function'), right('share')],
      rows: findLargestCosts(tree, LARGEST).map(cost => [`\`${cost.name}\``, `${(100 * cost.share).toFixed(1)} %`]),
    }),
  ].join('\n\n')

/** Profiles each path after a warm-up, and writes a flame graph of each and a page with their largest costs. */
export const profile = async (
  environment: Environment,
  machine: Machine,
  { paths, seconds, users, out }: ProfileOptions,
): Promise<void> => {
  await mkdir(out, { recursive: true })
  const written: string[] = []
  for (const path of profiledPaths.filter(({ name }) => paths.includes(name))) {
    progress(`profile: ${path.name}`)
    await using stack = new AsyncDisposableStack()
    const subject = await path.start({ environment, seconds, users, stack })
    await subject.run(seconds)
    await subject.profiler.start()
    await subject.run(seconds)
    const tree = toTree(await subject.profiler.stop())
    const title = path.title(users)
    await writeFile(join(out, `${path.name}.svg`), toFlameGraph(tree, title))
    written.push(toSection(path.name, title, tree))
  }
  const head = `# Profiles\n\n${INTRODUCTION}\n\n\`\`\`\n${machineText(machine)}\ncommit    ${await readCommit()}\n\`\`\``
  await writeFile(join(out, 'README.md'), `${[head, ...written].join('\n\n')}\n`)
}

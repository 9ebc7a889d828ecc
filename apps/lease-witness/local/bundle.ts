import { createHash, randomUUID } from 'node:crypto'
import { mkdirSync, readFileSync, realpathSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import type { BuildOptions, Metafile } from 'esbuild'

const projectRoot = resolve(import.meta.dirname, '../../..')
const loopbackOnly = resolve(import.meta.dirname, 'loopback-only.ts')
const stoppable = resolve(import.meta.dirname, 'stoppable.ts')

export interface BundleOptions {
  /** Whether requests whose `Host` is not a loopback name are rejected. */
  readonly loopbackHostsOnly?: boolean
  /** The module that exports `endWaits`. A request for the path in the binding STOP_PATH then ends all waits. */
  readonly waitsModule?: string | undefined
  /** Where bundles are kept. If it is not writable, each start makes a new one. */
  readonly cacheDir?: string
}

/** Without it, each start of the local run would make the same bundle. */
const BUNDLE_CACHE = resolve(import.meta.dirname, '../node_modules/.cache/bundle')

/** A package that an import names: the directory that contains the import, the name, and where it leads. */
type PackageLocation = readonly [from: string, name: string, path: string]

interface CachedBundle {
  /** SHA-256 of each file that the bundle depends on. */
  readonly files: Readonly<Record<string, string>>
  readonly packages: readonly PackageLocation[]
  readonly text: string
}

/** A module that wraps the worker of `entry`. */
const toSource = (entry: string, { loopbackHostsOnly, waitsModule }: BundleOptions): string => `
    import worker from ${JSON.stringify(entry)}
    import { loopbackOnly } from ${JSON.stringify(loopbackOnly)}
    import { stoppable } from ${JSON.stringify(stoppable)}
    ${waitsModule ? `import { env } from 'cloudflare:workers'` : ''}
    ${waitsModule ? `import { endWaits } from ${JSON.stringify(waitsModule)}` : ''}
    export * from ${JSON.stringify(entry)}
    const wrapped = ${waitsModule ? 'stoppable(worker, env.STOP_PATH, endWaits)' : 'worker'}
    export default ${loopbackHostsOnly ? 'loopbackOnly(wrapped)' : 'wrapped'}`

const toBuildOptions = (entry: string, options: BundleOptions) =>
  ({
    stdin: { contents: toSource(entry, options), resolveDir: import.meta.dirname },
    absWorkingDir: projectRoot,
    // Otherwise the bundle would also depend on each tsconfig.json.
    tsconfigRaw: {},
    bundle: true,
    write: false,
    metafile: true,
    format: 'esm',
    target: 'es2024',
    conditions: ['workerd', 'worker', 'browser'],
    external: ['cloudflare:*'],
    sourcemap: 'inline',
    logLevel: 'silent',
  }) satisfies BuildOptions

const toHash = (data: string | Uint8Array): string => createHash('sha256').update(data).digest('hex')

/** Searches the directory and its parents, as the resolution of an import does. */
const findUpwards = (directory: string, path: string): string | undefined => {
  try {
    return realpathSync(join(directory, path))
  } catch {
    const parent = dirname(directory)
    return parent === directory ? undefined : findUpwards(parent, path)
  }
}

const findPackage = (from: string, name: string) => findUpwards(from, join('node_modules', name))

/** `@pool/contract` of `@pool/contract/fields`; undefined for a path. */
const toPackageName = (specifier: string): string | undefined => /^(?:@[\w.-]+\/)?\w[\w.-]*/.exec(specifier)?.[0]

/** What else the bundle depends on, apart from the build options. */
const listDependencies = ({ inputs }: Metafile) => {
  const files = new Set<string>()
  const packages = new Map<string, PackageLocation>()
  const addPackage = (from: string, name: string) => {
    const path = findPackage(from, name)
    if (path) packages.set(`${from}:${name}`, [from, name, path])
  }
  addPackage(import.meta.dirname, 'esbuild')
  for (const [path, { imports }] of Object.entries(inputs)) {
    if (path === '<stdin>') continue
    const file = resolve(projectRoot, path)
    const directory = dirname(file)
    files.add(file)
    const manifest = findUpwards(directory, 'package.json')
    if (manifest) files.add(manifest)
    for (const { original, external } of imports) {
      const name = external || original === undefined ? undefined : toPackageName(original)
      if (name) addPackage(directory, name)
    }
  }
  return { files: [...files], packages: [...packages.values()] }
}

const isCurrent = ({ files, packages }: CachedBundle): boolean =>
  Object.entries(files).every(([path, hash]) => toHash(readFileSync(path)) === hash) &&
  packages.every(([from, name, path]) => findPackage(from, name) === path)

/** The text of the bundle in the file; undefined if there is none, or if one of its inputs has changed. */
const readCached = (path: string): string | undefined => {
  try {
    const cached: CachedBundle = JSON.parse(readFileSync(path, 'utf8'))
    return isCurrent(cached) ? cached.text : undefined
  } catch {
    return undefined
  }
}

const writeCached = (path: string, bundle: CachedBundle): void => {
  // Other processes may write the same bundle now, or read it.
  const temporary = `${path}.${randomUUID()}`
  try {
    mkdirSync(dirname(path), { recursive: true })
    try {
      writeFileSync(temporary, JSON.stringify(bundle))
      renameSync(temporary, path)
    } finally {
      rmSync(temporary, { force: true })
    }
  } catch {
    // The directory is not writable, or the disk is full.
  }
}

/** Bundles the worker into one module, or reads it from the cache. The runtime provides the `cloudflare:` modules. */
export const bundle = async (entry: string, options: BundleOptions = {}): Promise<string> => {
  const buildOptions = toBuildOptions(entry, options)
  const path = join(options.cacheDir ?? BUNDLE_CACHE, `${toHash(JSON.stringify(buildOptions))}.json`)
  const cached = readCached(path)
  if (cached !== undefined) return cached
  const { build, stop } = await import('esbuild')
  const startedAt = Date.now()
  try {
    const { outputFiles, metafile } = await build(buildOptions)
    const [output] = outputFiles
    if (!output) throw new Error(`esbuild produced no output for ${entry}`)
    const { files, packages } = listDependencies(metafile)
    // esbuild may have read a file before or after a change during the build.
    if (files.every(file => statSync(file).mtimeMs < startedAt)) {
      const hashes = files.map(file => [file, toHash(readFileSync(file))])
      writeCached(path, { files: Object.fromEntries(hashes), packages, text: output.text })
    }
    return output.text
  } finally {
    // Otherwise its process lives as long as ours.
    await stop()
  }
}

import { globSync, statSync } from 'node:fs'
import { cp, mkdir, readdir, readFile, writeFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { basename, dirname, join, resolve } from 'node:path'
import { build, type Metafile, type Plugin, stop } from 'esbuild'

const readLicence = async ({ name, version, licence, folder }: BundledPackage): Promise<string> => {
  const files = (await readdir(folder)).filter(file => /^(?:licen[cs]e|copying|notice)/i.test(file)).sort()
  const texts = await Promise.all(files.map(file => readFile(join(folder, file), 'utf8')))
  return [`${name} ${version} (${licence})`, ...texts.map(text => text.trim())].join('\n\n')
}

/** Writes LICENSES.txt: most licences require that their text goes along with the code. */
export const writeLicences = async (folder: string, packages: readonly BundledPackage[]): Promise<void> => {
  const licences = await Promise.all(packages.map(readLicence))
  await writeFile(join(folder, 'LICENSES.txt'), `${licences.join(`\n\n${'-'.repeat(80)}\n\n`)}\n`)
}

export interface BundleOptions {
  /** The folder of the app. */
  readonly app: string
  /** An empty folder. */
  readonly outDir: string
  /** The entry modules, relative to `app`, by the name of the file that each becomes. */
  readonly commands: Readonly<Record<string, string>>
  /** The oldest Node that runs it: `node24` by default. */
  readonly target?: string
  /** Files of npm packages that the app reads at run time, as `package/file`. They keep their path in `node_modules`. */
  readonly packageFiles?: readonly string[]
}

/** A package of which a bundle holds code or files. */
export interface BundledPackage {
  readonly name: string
  readonly version: string
  /** An SPDX expression. */
  readonly licence: string
  readonly folder: string
}

/** A resource that a module names relative to itself. */
const RESOURCE = /new URL\('([^']+)', import\.meta\.url\)/g

/** What a resource folder holds for readers and for its own tests. */
const NOT_READ = /\.md$|\/(?:tests|\.terraform)$/
/** The other modules of a Terraform module. */
const MODULE_SOURCE = /^ *source *= *"(\.\.\/[^"]+)"$/gm

/** The folder of a Terraform module with those of the modules that it calls; otherwise the path alone. */
const withCalledModules = async (path: string): Promise<readonly string[]> => {
  const files = statSync(path).isDirectory() ? globSync('*.tf', { cwd: path }) : []
  const texts = await Promise.all(files.map(file => readFile(join(path, file), 'utf8')))
  const called = texts.flatMap(text =>
    Array.from(text.matchAll(MODULE_SOURCE), ([, source = '']) => resolve(path, source)),
  )
  return [path, ...(await Promise.all([...new Set(called)].map(withCalledModules))).flat()]
}

/**
 * Copies the files and folders that the modules name as `new URL('…', import.meta.url)` into `outDir`, under their own
 * names, and lets the bundle name them there.
 */
const copyResources = (outDir: string): Plugin => ({
  name: 'copy-resources',
  setup({ onLoad }) {
    const sources = new Map<string, string>()
    const copy = async (source: string): Promise<void> => {
      const name = basename(source)
      const other = sources.get(name) ?? source
      if (other !== source) throw new Error(`${other} and ${source} have the same name; rename one of them`)
      sources.set(name, source)
      await cp(source, join(outDir, name), { recursive: true, filter: path => !NOT_READ.test(path) })
    }
    onLoad({ filter: /\.ts$/ }, async ({ path }) => {
      const text = await readFile(path, 'utf8')
      for (const [, reference = ''] of text.matchAll(RESOURCE)) {
        for (const source of await withCalledModules(resolve(dirname(path), reference))) await copy(source)
      }
      const toLocal = (_: string, reference: string): string =>
        `new URL('./${basename(reference)}${reference.endsWith('/') ? '/' : ''}', import.meta.url)`
      return { contents: text.replace(RESOURCE, toLocal), loader: 'ts' }
    })
  },
})

const readManifest = async (folder: string): Promise<Record<string, string>> =>
  JSON.parse(await readFile(join(folder, 'package.json'), 'utf8'))

/** The folder of the npm package that a path belongs to; null: a source file of this repository. */
const toPackageFolder = (path: string): string | null =>
  /^.*\/node_modules\/(?:@[^/]+\/)?[^/]+(?=\/)/.exec(path)?.[0] ?? null

/** The npm packages of which a bundle holds code, and those of `files`, by name. */
export const listPackages = async (
  { inputs }: Metafile,
  files: readonly string[] = [],
): Promise<readonly BundledPackage[]> => {
  const paths = [...Object.keys(inputs).map(path => resolve(path)), ...files]
  const folders = new Set(paths.map(toPackageFolder).filter(folder => folder !== null))
  const packages = await Promise.all(
    Array.from(folders, async folder => {
      const { name = '', version = '', license: licence = '' } = await readManifest(folder)
      return { name, version, licence, folder }
    }),
  )
  return packages.sort((a, b) => (a.name < b.name ? -1 : 1))
}

/**
 * Bundles each command of an app into a JavaScript file with a source map, for Node, beside files that commands share.
 * `outDir` then has everything that the commands need, in particular the resources that they read. Resolves with the npm
 * packages in it.
 */
export const bundle = async (options: BundleOptions): Promise<readonly BundledPackage[]> => {
  const { app, outDir, commands, packageFiles = [] } = options
  await mkdir(outDir, { recursive: true })
  // Without the stop, esbuild's process lives as long as this one.
  const { metafile, warnings } = await build({
    entryPoints: Object.fromEntries(Object.entries(commands).map(([name, entry]) => [name, join(app, entry)])),
    outdir: outDir,
    bundle: true,
    // A module that is imported only when it is needed costs no memory before.
    splitting: true,
    platform: 'node',
    format: 'esm',
    target: options.target ?? 'node24',
    // Comments and white space would cost memory: they are part of the source that V8 keeps, and any other character than those of
    // Latin-1 doubles it. An uncaught error shows one line, so lines stay short.
    minifyWhitespace: true,
    lineLimit: 120,
    sourcemap: true,
    // The sources are in the repository. Without them the map has half the size.
    sourcesContent: false,
    // CommonJS packages call `require` for modules of Node.
    banner: {
      js: "import { createRequire as createBundleRequire } from 'node:module'\nconst require = createBundleRequire(import.meta.url)",
    },
    metafile: true,
    logLevel: 'silent',
    plugins: [copyResources(outDir)],
  }).finally(stop)
  if (warnings.length > 0)
    throw new Error(warnings.map(({ text, location }) => `${location?.file}: ${text}`).join('\n'))
  const require = createRequire(join(app, 'package.json'))
  const files = packageFiles.map(file => require.resolve(file))
  for (const file of files) {
    const target = join(outDir, file.slice(file.lastIndexOf('/node_modules/')))
    await mkdir(dirname(target), { recursive: true })
    await cp(file, target)
  }
  const { name, version, engines } = await readManifest(app)
  await writeFile(
    join(outDir, 'package.json'),
    `${JSON.stringify({ name, version, type: 'module', engines }, null, 2)}\n`,
  )
  return listPackages(metafile, files)
}

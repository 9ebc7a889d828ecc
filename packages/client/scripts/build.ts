import { execFileSync } from 'node:child_process'
import { globSync } from 'node:fs'
import { readFile, rm, writeFile } from 'node:fs/promises'
import { dirname, join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { gzipSync } from 'node:zlib'
import { build, type Plugin, stop } from 'esbuild'

/** Builds the package into `dist`: ES modules with the contract bundled in, and their types. */

const root = fileURLToPath(new URL('..', import.meta.url))
const dist = join(root, 'dist')
const types = join(dist, 'types')

/** The entry points, by the name of the file that each becomes. */
const ENTRIES = { index: 'src/index.ts', allocation: 'src/allocation/index.ts', leases: 'src/leases/index.ts' }

const LITERAL = /(?:'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|`(?:[^`\\]|\\.)*`)/.source

/**
 * What the OpenAPI documents need of a schema and of an operation, and the texts of the errors that the service sends: much
 * code that no client reads. The ids would also be registered with the zod of the whole program.
 */
const UNREAD: readonly (readonly [RegExp, string])[] = [
  [new RegExp(`\\b(?:description|summary|tag|example):\\s*${LITERAL}\\s*(?:,|(?=\\}))`, 'g'), ''],
  [/(\.meta\(\{\s*)id: '\w+',?/g, '$1'],
  [/\.meta\(\{\s*\}\)/g, ''],
  // The texts of the error codes, and the errors of an operation.
  [new RegExp(`(\\[\\s*[345][0-9]{2},\\s*)${LITERAL}`, 'g'), "$1''"],
  [/\berrors: \[(?:[^[\]]|\[[^[\]]*\])*\],/g, ''],
  [new RegExp(`\\b(?:counted|listener):\\s*${LITERAL}\\s*,`, 'g'), ''],
  [new RegExp(`(\\brule\\(\\s*'[a-z-]+',\\s*)${LITERAL}`, 'g'), "$1''"],
  // An elector validates a slot, a holder and a value.
  [new RegExp(`(\\bleaseRule\\(\\s*'(?!invalid-(?:slot|holder|value)')[a-z-]+',\\s*)${LITERAL}`, 'g'), "$1''"],
]

const omitUnread: Plugin = {
  name: 'omit-unread',
  setup({ onLoad }) {
    onLoad({ filter: /\/contract\/src\/.*\.ts$/ }, async ({ path }) => {
      const source = await readFile(path, 'utf8')
      const contents = UNREAD.reduce((text, [pattern, replacement]) => text.replace(pattern, replacement), source)
      return { contents, loader: 'ts' }
    })
  },
}

const bundle = async (): Promise<void> => {
  // Without the stop, esbuild's process lives as long as this one.
  const { warnings } = await build({
    absWorkingDir: root,
    entryPoints: ENTRIES,
    outdir: dist,
    bundle: true,
    splitting: true,
    chunkNames: 'shared-[hash]',
    platform: 'neutral',
    format: 'esm',
    // Node 20, workerd, and browsers of 2023.
    target: 'es2022',
    external: ['zod'],
    minify: true,
    // For an uncaught error, Node prints the line above the reason.
    lineLimit: 200,
    // With the sources in it, a debugger shows them.
    sourcemap: true,
    plugins: [omitUnread],
    logLevel: 'silent',
  }).finally(stop)
  if (warnings.length > 0) throw new Error(warnings.map(({ text }) => text).join('\n'))
}

/** The declaration of an operation up to its summary, which becomes the comment of the method. */
const OPERATION = /^( +)readonly (\w+): \{\n( +method: [\s\S]*?readonly summary: "((?:[^"\\]|\\.)*)")/gm

/** The declarations name the contract by its package, which is not published with this one. */
const bundleTypes = async (): Promise<void> => {
  execFileSync('tsc', ['-p', 'tsconfig.build.json'], { cwd: root, stdio: 'inherit' })
  const exports: Record<string, string> = JSON.parse(
    await readFile(join(root, '../contract/package.json'), 'utf8'),
  ).exports
  for (const file of globSync('**/*.d.ts', { cwd: types })) {
    const path = join(types, file)
    const toContract = (subpath: string): string => {
      const source = exports[`.${subpath}`]
      if (source === undefined) throw new Error(`${file} imports @pool/contract${subpath}, which does not exist`)
      const target = relative(dirname(path), join(types, 'contract', source))
      return target.startsWith('.') ? target : `./${target}`
    }
    const text = (await readFile(path, 'utf8'))
      .replace(OPERATION, '$1/** $4 */\n$1readonly $2: {\n$3')
      .replace(
        /(['"])@pool\/contract(\/[\w-]+)?\1/g,
        (_, quote: string, subpath = '') => `${quote}${toContract(subpath)}${quote}`,
      )
      .replace(/(from |import\()(['"])(\.{1,2}\/[^'"]+)\.ts\2/g, '$1$2$3.js$2')
    await writeFile(path, text)
  }
}

await rm(dist, { recursive: true, force: true })
await bundle()
await bundleTypes()
for (const file of globSync('*.js', { cwd: dist })) {
  const code = await readFile(join(dist, file))
  process.stdout.write(`${file}: ${code.length} bytes, ${gzipSync(code).length} gzipped\n`)
}

import { fileURLToPath } from 'node:url'
import { gzipSync } from 'node:zlib'
import { build } from 'vite'

const root = fileURLToPath(new URL('..', import.meta.url))

/** The largest script of the first page, gzipped. */
export const MAX_FIRST_PAGE_BYTES = 150 * 1_024

export interface ConsoleBuild {
  /** The folder with `index.html` and `assets/`. */
  readonly folder: string
  /** Bytes of script, gzipped, that the first page loads before it can be used. */
  readonly firstPageBytes: number
}

interface Chunk {
  readonly fileName: string
  readonly code: string
  readonly imports: readonly string[]
  readonly isEntry: boolean
}

/** The entry and the chunks that it imports, without those that it loads later. */
const findFirstPage = (chunks: readonly Chunk[]): readonly Chunk[] => {
  const found = new Set(chunks.filter(({ isEntry }) => isEntry))
  for (const chunk of found) {
    for (const name of chunk.imports) {
      const imported = chunks.find(({ fileName }) => fileName === name)
      if (imported) found.add(imported)
    }
  }
  return [...found]
}

/**
 * Builds the console into `folder`, which is `dist/` of this app by default. Throws if the script of the first page is
 * larger than MAX_FIRST_PAGE_BYTES.
 */
export const buildConsole = async (folder: string = fileURLToPath(new URL('../dist', import.meta.url))) => {
  const result = await build({
    root,
    configFile: false,
    base: '/console/',
    logLevel: 'error',
    oxc: { jsx: { runtime: 'automatic', importSource: 'preact' } },
    build: {
      outDir: folder,
      emptyOutDir: true,
      target: 'es2022',
      // A data: URL would need an exception in the policy of the page.
      assetsInlineLimit: 0,
      modulePreload: { polyfill: false },
    },
  })
  const outputs = Array.isArray(result) ? result : [result]
  const chunks = outputs.flatMap(output => ('output' in output ? output.output : [])).filter(o => o.type === 'chunk')
  const firstPageBytes = findFirstPage(chunks).reduce((sum, { code }) => sum + gzipSync(code).length, 0)
  if (firstPageBytes > MAX_FIRST_PAGE_BYTES) {
    throw new Error(`The first page has ${firstPageBytes} B of gzipped script; at most ${MAX_FIRST_PAGE_BYTES} B.`)
  }
  return { folder, firstPageBytes } satisfies ConsoleBuild
}

import { resolve } from 'node:path'
import { build, stop } from 'esbuild'

const loopbackOnly = resolve(import.meta.dirname, 'loopback-only.ts')

const toLoopbackOnlySource = (entry: string): string => `
  import worker from ${JSON.stringify(entry)}
  import { loopbackOnly } from ${JSON.stringify(loopbackOnly)}
  export * from ${JSON.stringify(entry)}
  export default loopbackOnly(worker)`

/**
 * Bundles the worker into one module. The runtime provides the `cloudflare:` modules. With `loopbackHostsOnly`, the module
 * rejects requests whose `Host` is not a loopback name.
 */
export const bundle = async (entry: string, { loopbackHostsOnly = false } = {}): Promise<string> => {
  const input = loopbackHostsOnly
    ? { stdin: { contents: toLoopbackOnlySource(entry), resolveDir: import.meta.dirname } }
    : { entryPoints: [entry] }
  try {
    const { outputFiles } = await build({
      ...input,
      bundle: true,
      write: false,
      format: 'esm',
      target: 'es2024',
      conditions: ['workerd', 'worker', 'browser'],
      external: ['cloudflare:*'],
      sourcemap: 'inline',
      logLevel: 'silent',
    })
    const [output] = outputFiles
    if (!output) throw new Error(`esbuild produced no output for ${entry}`)
    return output.text
  } finally {
    // Otherwise its process, 60 MB, lives as long as ours.
    await stop()
  }
}

import { build, stop } from 'esbuild'

/** Bundles the worker into one module. The runtime provides the `cloudflare:` modules. */
export const bundle = async (entry: string): Promise<string> => {
  try {
    const { outputFiles } = await build({
      entryPoints: [entry],
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

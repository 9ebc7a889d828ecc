import { build, stop } from 'esbuild'

/** The worker as one module. What starts with `cloudflare:` is the runtime's own. */
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
    if (!output) throw new Error(`${entry} gave no module`)
    return output.text
  } finally {
    // Its process would stay, with 60 MB, for as long as ours.
    await stop()
  }
}

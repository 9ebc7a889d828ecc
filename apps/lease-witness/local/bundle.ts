import { resolve } from 'node:path'
import { build, stop } from 'esbuild'

const loopbackOnly = resolve(import.meta.dirname, 'loopback-only.ts')
const stoppable = resolve(import.meta.dirname, 'stoppable.ts')

export interface BundleOptions {
  /** Whether requests whose `Host` is not a loopback name are rejected. */
  readonly loopbackHostsOnly?: boolean
  /** A path whose request ends all waits, and the module that exports `endWaits`. */
  readonly stop?: { readonly path: string; readonly module: string } | undefined
}

/** A module that wraps the worker of `entry`. */
const toSource = (entry: string, { loopbackHostsOnly = false, stop }: BundleOptions): string => {
  const stopping = stop && `stoppable(worker, ${JSON.stringify(stop.path)}, endWaits)`
  return `
    import worker from ${JSON.stringify(entry)}
    import { loopbackOnly } from ${JSON.stringify(loopbackOnly)}
    import { stoppable } from ${JSON.stringify(stoppable)}
    ${stop ? `import { endWaits } from ${JSON.stringify(stop.module)}` : ''}
    export * from ${JSON.stringify(entry)}
    const wrapped = ${stopping ?? 'worker'}
    export default ${loopbackHostsOnly ? 'loopbackOnly(wrapped)' : 'wrapped'}`
}

/** Bundles the worker into one module. The runtime provides the `cloudflare:` modules. */
export const bundle = async (entry: string, options: BundleOptions = {}): Promise<string> => {
  const input = { stdin: { contents: toSource(entry, options), resolveDir: import.meta.dirname } }
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

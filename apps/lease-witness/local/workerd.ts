import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { convertV4MiniflareOptions, Miniflare, NoOpLog } from 'miniflare'
import { unstable_getMiniflareWorkerOptions as workerOptions } from 'wrangler'
import { bundle } from './bundle.ts'
import type { LocalConfig } from './config.ts'

export interface RunningWitness extends AsyncDisposable {
  readonly port: number
}

/** Runs the worker that a wrangler.toml describes in workerd, on loopback. Each line that it logs goes to `onLine`. */
export const startWorkerd = async (
  wranglerToml: string,
  { port, dataDir, bindings }: LocalConfig,
  onLine: (line: string) => void,
): Promise<RunningWitness> => {
  const { workerOptions: described, main } = workerOptions(wranglerToml)
  if (!main) throw new Error(`${wranglerToml} names no main module`)
  const { modulesRules: _, ...options } = described
  const storage = join(dataDir, 'lease-witness')
  mkdirSync(storage, { recursive: true, mode: 0o700 })
  const miniflare = new Miniflare(
    convertV4MiniflareOptions({
      ...options,
      name: 'lease-witness',
      bindings: Object.assign({}, options.bindings, bindings),
      modules: [{ type: 'ESModule', path: 'index.mjs', contents: await bundle(main) }],
      resourcePersistencePath: storage,
      host: '127.0.0.1',
      port,
      // Offline: nothing is asked about where requests come from.
      cf: false,
      log: new NoOpLog(),
      handleStructuredLogs: ({ message }) => onLine(message),
    }),
  )
  try {
    const url = await miniflare.ready
    return { port: Number(url.port), [Symbol.asyncDispose]: () => miniflare.dispose() }
  } catch (error) {
    await miniflare.dispose().catch(() => {})
    throw error
  }
}

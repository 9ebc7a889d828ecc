import { resolve } from 'node:path'
import { convertV4MiniflareOptions, Miniflare, NoOpLog } from 'miniflare'
import { bundle } from '../../../local/bundle.ts'

export interface RunningWorker extends AsyncDisposable {
  readonly port: number
}

/** Runs the incorrect read-then-write worker with a KV namespace in memory. The tests must detect its double grants. */
export const startReadThenWrite = async (): Promise<RunningWorker> => {
  const contents = await bundle(resolve(import.meta.dirname, 'read-then-write-worker.ts'))
  const miniflare = new Miniflare(
    convertV4MiniflareOptions({
      name: 'read-then-write',
      modules: [{ type: 'ESModule', path: 'index.mjs', contents }],
      compatibilityDate: '2026-05-01',
      kvNamespaces: ['LEASES'],
      host: '127.0.0.1',
      port: 0,
      cf: false,
      log: new NoOpLog(),
    }),
  )
  const { port } = await miniflare.ready
  return { port: Number(port), [Symbol.asyncDispose]: () => miniflare.dispose() }
}

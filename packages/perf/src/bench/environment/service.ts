import { mkdtempSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { startNode } from '@pool/dev-server/process'

export interface Service extends AsyncDisposable {
  readonly port: number
  readonly pid: number
}

const startService = async (
  entry: string,
  env: Record<string, string>,
  cleanup: AsyncDisposableStack,
  { mayBeKilled = true } = {},
): Promise<Service> => {
  const child = startNode({ entry: fileURLToPath(import.meta.resolve(entry)), env })
  cleanup.defer(async () => void (await (mayBeKilled ? child.kill() : child.stop())))
  const { port } = await child.ready
  if (typeof port !== 'number') throw new Error(`${entry} did not say where it listens`)
  return { port, pid: child.pid, [Symbol.asyncDispose]: async () => void (await child.stop()) }
}

/**
 * The API with the settings that it has when nobody sets any, but for `env`. Its log stays at `info`: a line for each
 * request is part of what a request costs in production. This process reads the lines, as a container's runtime would.
 */
export const startApi = (
  databaseUrl: string,
  cleanup: AsyncDisposableStack,
  env: Readonly<Record<string, string>> = {},
): Promise<Service> =>
  startService(
    'allocation-api/src/main.ts',
    { PORT: '0', PDM_DATABASE_URL: databaseUrl, DNSPROVIDER_KIND: 'local', ...env },
    cleanup,
  )

/** The least that a request can cost on the same framework, adapter and runtime. */
export const startEmptyRoute = (cleanup: AsyncDisposableStack): Promise<Service> =>
  startService('./empty-route.ts', {}, cleanup)

/** The least that a start can take. */
export const startBareNode = (cleanup: AsyncDisposableStack): Promise<Service> =>
  startService('./bare-node.ts', {}, cleanup)

/** The witness, or one of what it is compared with. */
export type LeaseWorker = 'witness' | 'memory' | 'kv-only'

/** Let in by all of them. */
export const LEASE_TOKEN = 'token-of-the-bench-0123456789abcdef'

/**
 * A lease worker under workerd, with new storage in `folder`. The witness has the settings that it has when nobody sets
 * any: a log line for each request, which this process reads, as a collector would. Stopped in order, never killed:
 * what would be left behind is workerd, and it writes where we clean up.
 */
export const startLeaseWorker = (
  worker: LeaseWorker,
  folder: string,
  cleanup: AsyncDisposableStack,
): Promise<Service> => {
  const own = { PORT: '0', BEARER_TOKENS_CSV: LEASE_TOKEN, DATA_DIR: mkdtempSync(join(folder, `${worker}-`)) }
  return worker === 'witness'
    ? startService('lease-witness/local/main.ts', own, cleanup, { mayBeKilled: false })
    : startService('./lease-baselines/main.ts', { ...own, WORKER: `${worker}.toml` }, cleanup, { mayBeKilled: false })
}

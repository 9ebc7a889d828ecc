import { fileURLToPath } from 'node:url'
import { startNode } from '@pool/local-stack/process'

export interface Service extends AsyncDisposable {
  readonly port: number
  readonly pid: number
}

const startService = async (
  entry: string,
  env: Record<string, string>,
  cleanup: AsyncDisposableStack,
): Promise<Service> => {
  const child = startNode({ entry: fileURLToPath(import.meta.resolve(entry)), env })
  cleanup.defer(async () => void (await child.kill()))
  const { port } = await child.ready
  if (typeof port !== 'number') throw new Error(`${entry} did not say where it listens`)
  return { port, pid: child.pid, [Symbol.asyncDispose]: async () => void (await child.stop()) }
}

/**
 * The API with the settings that it has when nobody sets any. Its log stays at `info`: a line for each request is part
 * of what a request costs in production. This process reads the lines, as a container's runtime would.
 */
export const startApi = (databaseUrl: string, cleanup: AsyncDisposableStack): Promise<Service> =>
  startService(
    'allocation-api/src/main.ts',
    { PORT: '0', PDM_DATABASE_URL: databaseUrl, DNSPROVIDER_KIND: 'local' },
    cleanup,
  )

/** The least that a request can cost on the same framework, adapter and runtime. */
export const startEmptyRoute = (cleanup: AsyncDisposableStack): Promise<Service> =>
  startService('./empty-route.ts', {}, cleanup)

import { fileURLToPath } from 'node:url'
import { bundle } from 'lease-witness/local/bundle.ts'
import { readWranglerConfig } from 'lease-witness/local/wrangler-config.ts'
import type { WorkerArtifact } from '../host/artifacts.ts'

const main = fileURLToPath(new URL('./main.ts', import.meta.url))
const wranglerToml = fileURLToPath(new URL('../../../../wrangler.toml', import.meta.url))

/** Bundles the worker with its movable clock. */
export const bundleWorker = async (): Promise<WorkerArtifact> => {
  const { options } = readWranglerConfig(wranglerToml)
  const { rootPath: _, ...portable } = options
  return { script: await bundle(main), options: portable }
}

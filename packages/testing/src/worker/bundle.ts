import { fileURLToPath } from 'node:url'
import { bundle } from 'lease-witness/local/bundle.ts'
import { readWranglerConfig } from 'lease-witness/local/wrangler-config.ts'

/** The worker of the witness as one module, and the options of Miniflare that its configuration contains. */
export interface WorkerArtifact {
  readonly script: string
  readonly options: {
    readonly name: string
    readonly compatibilityDate: string
    readonly compatibilityFlags: string[]
    readonly bindings: Readonly<Record<string, unknown>>
    readonly kvNamespaces: Readonly<Record<string, { id: string }>>
    readonly durableObjects: Readonly<Record<string, { className: string; useSQLite: boolean }>>
  }
}

const main = fileURLToPath(new URL('./main.ts', import.meta.url))
const wranglerToml = fileURLToPath(new URL('../../../../wrangler.toml', import.meta.url))

/** Bundles the worker with its movable clock. */
export const bundleWorker = async (): Promise<WorkerArtifact> => {
  const { options } = readWranglerConfig(wranglerToml)
  const { rootPath: _, ...portable } = options
  return { script: await bundle(main), options: portable }
}

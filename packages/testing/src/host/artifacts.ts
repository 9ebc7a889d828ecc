import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { ServiceSpec } from '../protocol.ts'
import type { WorkerArtifact } from '../worker/bundle.ts'

/** What runs a service. */
export type Runtime = 'allocation-api' | 'lease-witness' | 'worker'
export type VariableNames = Readonly<Record<Runtime, readonly string[]>>

/** What a host runs: the sources of the workspace here, the bundles in the published package. */
export interface Artifacts {
  /** The main module of a service for Node. */
  readonly entries: Readonly<Record<ServiceSpec['kind'], string>>
  /** The program that creates the schema of the allocation API. */
  readonly migrate: string
  /** The SQL files that create the schema of a service. */
  readonly migrations: Readonly<Record<ServiceSpec['kind'], string>>
  readonly readWorker: () => Promise<WorkerArtifact>
  readonly readVariables: () => Promise<VariableNames>
  /** Where templates are kept. */
  readonly cacheFolder: string
}

const toPath = (module: string): string => fileURLToPath(import.meta.resolve(module))
const api = toPath('allocation-api/src/main.ts')
const witness = toPath('lease-witness/src/node/main.ts')

export const artifacts: Artifacts = {
  entries: { 'allocation-api': api, 'lease-witness': witness },
  migrate: toPath('allocation-api/src/migrate.ts'),
  migrations: {
    'allocation-api': join(dirname(api), 'database/migrations'),
    'lease-witness': join(dirname(witness), '../postgres/migrations'),
  },
  async readWorker() {
    const { bundleWorker } = await import('../worker/bundle.ts')
    return bundleWorker()
  },
  async readVariables() {
    const { productVariables } = await import('./product-variables.ts')
    return productVariables
  },
  cacheFolder: fileURLToPath(new URL('../../node_modules/.cache/testing', import.meta.url)),
}

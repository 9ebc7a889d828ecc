import { readFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import type { Artifacts } from '../host/artifacts.ts'

// Takes the place of host/artifacts.ts in the published package. The paths are relative to dist/.

const toPath = (path: string): string => fileURLToPath(new URL(path, import.meta.url))

export const artifacts: Artifacts = {
  entries: {
    'allocation-api': toPath('./allocation-api/main.js'),
    'lease-witness': toPath('./lease-witness/main.js'),
  },
  migrate: toPath('./allocation-api/migrate.js'),
  migrations: {
    'allocation-api': toPath('./allocation-api/migrations'),
    'lease-witness': toPath('./lease-witness/migrations'),
  },
  readWorker: async () => ({
    script: await readFile(toPath('./worker/worker.mjs'), 'utf8'),
    options: JSON.parse(await readFile(toPath('./worker/options.json'), 'utf8')),
  }),
  readVariables: async () => JSON.parse(await readFile(toPath('./variables.json'), 'utf8')),
  cacheFolder: toPath('../node_modules/.cache/testing'),
}

import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { BundleOptions } from './bundle.ts'

const toFolder = (app: string): string => fileURLToPath(new URL(`../../../apps/${app}`, import.meta.url))
const api = toFolder('allocation-api')
const witness = toFolder('lease-witness')

/** The services that run on a machine, by the name of their package. */
export const apps: Readonly<Record<string, BundleOptions>> = {
  'allocation-api': {
    app: api,
    outDir: join(api, 'dist'),
    commands: { main: 'src/main.ts', migrate: 'src/migrate.ts' },
    packageFiles: ['LICENSE', 'package.json', 'swagger-ui-bundle.js', 'swagger-ui.css'].map(
      file => `swagger-ui-dist/${file}`,
    ),
  },
  'lease-witness': {
    app: witness,
    // dist/ has the Worker.
    outDir: join(witness, 'dist-node'),
    commands: { main: 'src/node/main.ts', 'declare-restore': 'src/node/declare-restore.ts' },
  },
}

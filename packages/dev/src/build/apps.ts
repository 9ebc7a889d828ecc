import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { BundleOptions } from './bundle.ts'

const toPath = (path: string): string => fileURLToPath(new URL(`../../../../${path}`, import.meta.url))
const api = toPath('apps/allocation-api')
const witness = toPath('apps/lease-witness')
const cli = toPath('packages/cli')

export interface Program extends BundleOptions {
  /** Whether it serves the console, from `console/` beside its commands. */
  readonly servesConsole?: boolean
}

/** The services that run on a machine, by the name of their package. */
export const apps: Readonly<Record<string, Program>> = {
  'allocation-api': {
    app: api,
    outDir: join(api, 'dist'),
    commands: { main: 'src/main.ts', migrate: 'src/migrate.ts', 'terraform-runner': 'src/terraform-runner.ts' },
    packageFiles: ['LICENSE', 'package.json', 'swagger-ui-bundle.js', 'swagger-ui.css'].map(
      file => `swagger-ui-dist/${file}`,
    ),
    servesConsole: true,
  },
  'lease-witness': {
    app: witness,
    // dist/ has the Worker.
    outDir: join(witness, 'dist-node'),
    commands: { main: 'src/node/main.ts', 'declare-restore': 'src/node/declare-restore.ts' },
  },
}

/** What `main.ts` builds, by the argument. */
export const programs: Readonly<Record<string, Program>> = {
  ...apps,
  cli: { app: cli, outDir: join(cli, 'dist'), commands: { poolctl: 'src/main.ts' }, target: 'node20' },
}

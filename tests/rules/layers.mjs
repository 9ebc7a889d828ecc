/**
 * The layers. A folder determines the layer of its files: a file belongs to the first layer that lists its folder.
 * `**\/domain/` is a folder of that name at any depth. A layer imports itself, the layers in `imports`, and the npm
 * packages and workspace packages in `packages`; from the layers in `types` it imports types only.
 */

const api = 'apps/allocation-api/src/'
const witness = 'apps/lease-witness/src/'
const operatorConsole = 'apps/console/src/'
const database = 'packages/runtime/src/database/'
const environment = 'packages/runtime/src/service/env.ts'
const spelling = 'packages/runtime/src/spelling.ts'
const unknownVariables = 'packages/runtime/src/service/unknown-variables.ts'
const bodyError = 'packages/runtime/src/service/body-error.ts'
const limits = ['shared-limit', 'received-request'].map(name => `packages/runtime/src/service/${name}.ts`)
/** Without a connection to a database, of which these layers have none. */
const time = 'packages/runtime/src/database/time.ts'

/** Any module of Node. The worker has a rule against it. */
export const NODE = 'node:*'

export const layers = [
  { name: 'contract', root: 'packages/contract/src/', folders: [''], imports: [], packages: ['zod'] },

  {
    name: 'api-domain',
    root: api,
    folders: ['config/', 'naming/', '**/domain/'],
    imports: ['contract', 'api-lib', 'api-dns-wire'],
    packages: ['packages/runtime/src/database/connection-string.ts', environment, spelling],
  },
  /** The presentation and the wire format of records, without a connection. */
  { name: 'api-dns-wire', root: api, folders: ['dns/wire/'], imports: [], packages: [NODE] },
  {
    name: 'api-lib',
    root: api,
    folders: ['lib/'],
    imports: [],
    packages: [environment, 'packages/runtime/src/service/proxy-issues.ts', 'p-limit', NODE],
  },
  {
    name: 'api-idempotency',
    root: api,
    folders: ['idempotency/'],
    imports: ['api-domain', 'api-lib'],
    packages: [database, NODE],
  },
  {
    name: 'api-dns',
    root: api,
    folders: ['dns/'],
    imports: ['api-domain', 'api-dns-wire', 'api-lib', 'contract'],
    packages: [database, environment, 'p-limit', 'postgres', 'zod', NODE],
  },
  {
    name: 'api-reconciler',
    root: api,
    folders: ['reconciler/'],
    imports: ['api-domain', 'api-lib', 'contract'],
    types: ['api-dns'],
    packages: [database, 'p-limit', 'postgres', NODE],
  },
  {
    name: 'api-allocation',
    root: api,
    folders: ['allocation/'],
    imports: ['api-domain', 'api-lib', 'contract', 'api-idempotency', 'api-reconciler'],
    packages: [database, 'postgres', NODE],
  },
  {
    name: 'api-tenant-records',
    root: api,
    folders: ['tenant-records/'],
    imports: ['api-domain', 'api-lib', 'contract', 'api-idempotency', 'api-reconciler', 'api-allocation'],
    packages: [database, 'postgres', NODE],
  },
  {
    name: 'api-credentials',
    root: api,
    folders: ['credentials/'],
    imports: ['api-domain', 'api-lib', 'contract'],
    packages: [environment, 'aws4fetch', 'fast-xml-parser', 'zod', NODE],
  },
  {
    name: 'api-terraform',
    root: api,
    folders: ['deployments/terraform/'],
    imports: ['api-domain', 'api-lib'],
    types: ['api-deployments'],
    packages: [environment, time, NODE],
  },
  {
    name: 'api-deployments',
    root: api,
    folders: ['deployments/'],
    imports: ['api-domain', 'api-lib', 'contract', 'api-allocation', 'api-idempotency'],
    types: ['api-credentials'],
    packages: [database, 'p-limit', 'postgres', NODE],
  },
  {
    name: 'api-transfer',
    root: api,
    folders: ['transfer/'],
    imports: ['api-domain', 'api-lib', 'contract', 'api-allocation'],
    packages: [database, 'postgres', 'zod', NODE],
  },
  {
    name: 'api-operator',
    root: api,
    folders: ['operator/'],
    imports: ['api-domain', 'api-lib', 'contract'],
    packages: [database, 'packages/runtime/src/service/sign-in-code.ts', 'zod', NODE],
  },
  {
    name: 'api-observability',
    root: api,
    folders: ['observability/'],
    imports: ['api-domain', 'api-lib', 'contract'],
    packages: [time, 'pino', '@prometheus-io/client', '@opentelemetry/.+', NODE],
  },
  {
    name: 'api-http',
    root: api,
    folders: ['http/'],
    imports: ['api-domain', 'api-lib', 'contract'],
    types: ['api-allocation', 'api-credentials', 'api-deployments', 'api-operator', 'api-reconciler', 'api-transfer'],
    packages: [
      spelling,
      bodyError,
      ...limits,
      'hono',
      '@hono/node-server',
      '@hono/zod-validator',
      'packages/contract/openapi/page.ts',
      'swagger-ui-dist',
      'zod',
      NODE,
    ],
  },
  { name: 'api-database', root: api, folders: ['database/'], imports: ['api-lib'], packages: [database, NODE] },
  /** The composition root imports every layer; no file imports it. */
  {
    name: 'api-main',
    root: api,
    folders: ['main.ts', 'migrate.ts', 'terraform-runner.ts', 'service.ts', 'service-config.ts', 'doctor/', 'parts/'],
    imports: null,
  },

  { name: 'lease-domain', root: witness, folders: ['lease/', '**/domain/'], imports: ['contract'], packages: [] },
  {
    name: 'lease-service',
    root: witness,
    folders: ['lease-service.ts'],
    imports: ['lease-domain', 'contract'],
    packages: [],
  },
  {
    name: 'lease-log',
    root: witness,
    folders: ['log.ts', 'settings.ts'],
    imports: ['lease-domain', 'contract'],
    packages: [unknownVariables],
  },
  {
    name: 'lease-kv-copy',
    root: witness,
    folders: ['kv-copy/'],
    imports: ['lease-domain', 'lease-service', 'contract'],
    types: ['lease-bindings'],
    packages: [],
  },
  {
    name: 'lease-object',
    root: witness,
    folders: ['object/'],
    imports: ['lease-domain', 'lease-service', 'lease-kv-copy', 'lease-log', 'contract'],
    types: ['lease-bindings'],
    packages: [database, 'cloudflare:workers'],
  },
  {
    name: 'lease-http',
    root: witness,
    folders: ['http/', 'app.ts'],
    imports: ['lease-domain', 'lease-log', 'contract'],
    types: ['lease-service'],
    packages: [spelling, bodyError, 'hono', 'zod'],
  },
  {
    name: 'lease-bindings',
    root: witness,
    folders: ['env.ts'],
    imports: [],
    types: ['lease-object', 'lease-log'],
    packages: [],
  },
  {
    name: 'lease-postgres',
    root: witness,
    folders: ['postgres/'],
    imports: ['lease-domain', 'lease-service', 'lease-log', 'contract'],
    packages: [database, 'postgres', NODE],
  },
  /** The composition roots: of the worker, and of the process on Node. */
  { name: 'lease-main', root: witness, folders: ['index.ts', 'stored-policies.ts', 'node/'], imports: null },

  /** The rules of retries and elections. The rest of the client has one rule: it runs everywhere. */
  {
    name: 'client-domain',
    root: 'packages/client/src/',
    folders: ['domain/', '**/domain/'],
    imports: ['contract'],
    packages: [],
  },
  { name: 'console-domain', root: operatorConsole, folders: ['domain/'], imports: ['contract'], packages: ['zod'] },
  {
    name: 'console-api',
    root: operatorConsole,
    folders: ['api/'],
    imports: ['console-domain', 'contract'],
    packages: ['packages/client/src/', 'preact'],
  },
  {
    name: 'console-ui',
    root: operatorConsole,
    folders: ['ui/'],
    imports: ['console-domain', 'console-api'],
    types: ['contract'],
    packages: ['@tanstack/.+', 'preact', 'uplot'],
  },
  {
    name: 'console-pages',
    root: operatorConsole,
    folders: ['pages/'],
    imports: ['console-domain', 'console-api', 'console-ui', 'contract'],
    packages: ['packages/client/src/', 'preact'],
  },
  {
    name: 'console-main',
    root: operatorConsole,
    folders: ['main.tsx', 'app.tsx', 'validation.ts', 'styles/'],
    imports: null,
  },
]

const toPattern = text => text.replace('**/', '.+/').replace(/\.(tsx?)$/, '\\.$1$')

/** The patterns of the paths that belong to a layer, without the folders that another layer has inside its folders. */
export const toPathPatterns = ({ root, folders }) =>
  folders.map(folder => {
    const inner = layers
      .filter(layer => layer.root === root)
      .flatMap(layer => layer.folders)
      .filter(other => other !== folder && other.startsWith(folder))
    const exclusions = inner.map(other => `(?!${toPattern(other.slice(folder.length))})`)
    return `^${root}${toPattern(folder)}${exclusions.join('')}`
  })

/** The pattern of the resolved paths of a package: a folder of the workspace, an npm package, or Node's modules. */
export const toPackagePattern = name => {
  if (name === NODE) return '^(node:)?[a-z/_]+$'
  if (name.startsWith('packages/')) return `^${name}`
  return name.includes(':') ? `^${name}$` : `/node_modules/${name}/`
}

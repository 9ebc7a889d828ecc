import { npm } from './allow-imports.mjs'

/**
 * The folders of each app as layers. A file belongs to the first layer whose `files` match its path; it imports its
 * own layer, the layers in `imports` and the packages in `packages`, and, as types only, the layers in `types`.
 * docs/architecture.md has the same table in words.
 */

const api = folders => `^apps/allocation-api/src/${folders}`
const worker = folders => `^apps/lease-witness/src/${folders}`

const contract = '^packages/contract/src/'
const database = '^packages/database/src/'
const node = (...modules) => `^(node:)?(${modules.join('|')})$`

export const layers = [
  {
    name: 'contract',
    files: contract,
    imports: [],
    packages: [npm('zod')],
  },
  {
    name: 'api-domain',
    files: api('((config|naming)/|.+/domain/)'),
    imports: ['contract', 'api-lib'],
    packages: [],
  },
  {
    name: 'api-lib',
    files: api('lib/'),
    imports: [],
    packages: [npm('p-limit'), node('timers/promises')],
  },
  {
    name: 'api-idempotency',
    files: api('idempotency/'),
    imports: ['api-domain'],
    packages: [database, node('crypto')],
  },
  {
    name: 'api-dns',
    files: api('dns/'),
    imports: ['api-domain', 'api-lib', 'contract'],
    packages: [
      database,
      npm('(dns-packet|@types/dns-packet|postgres|zod)'),
      node('buffer', 'crypto', 'dgram', 'events', 'net', 'stream/promises', 'timers', 'timers/promises'),
    ],
  },
  {
    name: 'api-reconciler',
    files: api('reconciler/'),
    imports: ['api-domain', 'api-lib', 'contract'],
    types: ['api-dns'],
    packages: [database, npm('(p-limit|postgres)'), node('timers/promises')],
  },
  {
    name: 'api-allocation',
    files: api('allocation/'),
    imports: ['api-domain', 'api-lib', 'contract', 'api-idempotency'],
    types: ['api-reconciler'],
    packages: [database, npm('postgres'), node('timers/promises')],
  },
  {
    name: 'api-credentials',
    files: api('credentials/'),
    imports: ['api-domain', 'api-lib', 'contract'],
    packages: [npm('(aws4fetch|fast-xml-parser|zod)'), node('crypto', 'fs', 'http', 'https', 'tls')],
  },
  {
    name: 'api-terraform',
    files: api('deployments/terraform/'),
    imports: ['api-domain', 'api-lib'],
    types: ['api-deployments'],
    packages: [node('child_process', 'fs/promises', 'path', 'process', 'stream', 'url', 'util')],
  },
  {
    name: 'api-deployments',
    files: api('deployments/'),
    imports: ['api-domain', 'api-lib', 'contract', 'api-allocation', 'api-idempotency'],
    types: ['api-credentials'],
    packages: [database, npm('(p-limit|postgres)'), node('timers/promises')],
  },
  {
    name: 'api-observability',
    files: api('observability/'),
    imports: ['api-domain', 'contract'],
    packages: [npm('(pino|prom-client|@prometheus-io/client)'), node('crypto', 'stream')],
  },
  {
    name: 'api-http',
    files: api('http/'),
    imports: ['api-domain', 'api-lib', 'contract'],
    types: ['api-allocation', 'api-credentials', 'api-deployments', 'api-reconciler'],
    packages: [
      '^packages/openapi/src/document\\.ts$',
      npm('(hono|@hono/node-server|@hono/zod-validator|swagger-ui-dist|zod)'),
      node('crypto', 'fs/promises', 'http', 'module', 'path', 'stream'),
    ],
  },
  { name: 'api-database', files: api('database/'), imports: [], packages: [database, node('fs/promises')] },
  /** The composition root: imports everything, and nothing imports it. */
  { name: 'api-main', files: api('(main|service)\\.ts$'), imports: null },

  {
    name: 'lease-domain',
    files: worker('(lease/|.+/domain/)'),
    imports: ['contract'],
    packages: [],
  },
  { name: 'lease-service', files: worker('lease-service\\.ts$'), imports: ['lease-domain', 'contract'], packages: [] },
  { name: 'lease-log', files: worker('log\\.ts$'), imports: ['lease-domain', 'contract'], packages: [] },
  {
    name: 'lease-kv-copy',
    files: worker('kv-copy/'),
    imports: ['lease-domain', 'lease-service', 'contract'],
    types: ['lease-bindings'],
    packages: [],
  },
  {
    name: 'lease-object',
    files: worker('object/'),
    imports: ['lease-domain', 'lease-service', 'lease-kv-copy', 'lease-log', 'contract'],
    types: ['lease-bindings'],
    packages: [database, '^cloudflare:workers$'],
  },
  {
    name: 'lease-http',
    files: worker('(http/|app\\.ts$)'),
    imports: ['lease-domain', 'lease-log', 'contract'],
    types: ['lease-service', 'lease-bindings'],
    packages: [npm('hono'), npm('@hono/zod-validator'), npm('zod')],
  },
  { name: 'lease-bindings', files: worker('env\\.ts$'), imports: [], types: ['lease-object'], packages: [] },
  { name: 'lease-main', files: worker('index\\.ts$'), imports: null },
]

import { contract, npm, only } from './only.mjs'

const worker = 'apps/lease-witness/src'
const any = (...files) => `^${worker}/(${files.join('|')})$`

export const rooms = {
  rules: any('(adoption|allow-list|copy-schedule|lease|news|object-fault|precondition|prefer|slot|tokens)\\.ts'),
  ports: any('witness\\.ts'),
  /** Workers KV, the console and the way to an object: each adapts one thing of the platform. */
  adapters: any('(log|mirror|slots)\\.ts'),
  object: any('(lease-object|waiters|within)\\.ts'),
  http: any('http/[a-z-]+\\.ts', 'app\\.ts'),
  bindings: any('env\\.ts'),
  entry: any('index\\.ts'),
}

/** Runs the worker on a developer's machine, in Node. */
const local = '^apps/lease-witness/local/[a-z-]+\\.ts$'

const { rules, ports, adapters, object, http, bindings } = rooms
const runtime = '^cloudflare:workers$'

export const forbidden = [
  ...only(
    'lease-rules-are-pure',
    rules,
    [rules, contract],
    'A rule of the witness knows the contract and other rules; what the platform does is an argument.',
    [ports],
  ),
  ...only('lease-ports-name-rules', ports, [rules, contract], 'A port is made of the types of the rules.'),
  ...only(
    'lease-adapters-adapt',
    adapters,
    [rules, ports, contract],
    'An adapter knows rules and its port, never another adapter.',
    [object, bindings],
  ),
  ...only(
    'lease-object-decides',
    object,
    [rules, contract, object, any('(log|mirror)\\.ts'), runtime],
    'The object loads, lets the rules decide, and stores; its copy goes through the mirror.',
    [ports],
  ),
  ...only(
    'lease-http-knows-the-port',
    http,
    [rules, http, contract, any('log\\.ts'), npm('hono')],
    'HTTP parses, asks the port and maps its outcome; it never sees an object or a namespace.',
    [ports, bindings, npm('zod')],
  ),
  ...only('lease-bindings-are-types', bindings, [], 'What the platform binds, by name.', [object]),
  ...only(
    'lease-local-run',
    local,
    [
      local,
      any('(log|tokens)\\.ts'),
      npm('(esbuild|miniflare|smol-toml|zod)'),
      '^packages/local-stack/',
      '^(node:)?[a-z/_]+$',
    ],
    'The local run describes the worker to its runtime; of the worker it knows the settings only.',
  ),
  {
    name: 'worker-is-not-node',
    comment: 'What runs on the platform has no Node.',
    severity: 'error',
    from: { path: `^${worker}/`, pathNot: '\\.test\\.ts$' },
    to: { dependencyTypes: ['core'] },
  },
]

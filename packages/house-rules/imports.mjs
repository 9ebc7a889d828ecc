/**
 * Which room may import which: the table of docs/architecture.md as rules of dependency-cruiser. A file that is in no
 * room is itself a breach, so a new file must be given one here.
 */

const api = 'apps/allocation-api/src'
const any = (...files) => `^${api}/(${files.join('|')})$`

const rooms = {
  rules: any(
    'allocation/(allocation|decision|names|reserved-labels|row)\\.ts',
    'dns/(backoff|plan|record-set|state)\\.ts',
    'dns/local/resolve\\.ts',
    'observability/(answered|redact)\\.ts',
    '(config|duration)\\.ts',
  ),
  ports: any('dns/provider\\.ts'),
  verbs: any(
    'allocation/(check|commit|get|list|paginate|release|renew|reserve|sweeper)\\.ts',
    'dns/(converge|pass)\\.ts',
    'periodic\\.ts',
  ),
  sql: any(
    'database/(connect|reachable|schema|socket)\\.ts',
    'allocation/(fragments|history|once|reader|store)\\.ts',
    'dns/(claim|zone-store)\\.ts',
  ),
  localDns: any(
    'dns/local/(message|provider|record-data|responder|server|tcp-connection|until-aborted|zone-table)\\.ts',
  ),
  edges: any('observability/(log|metrics)\\.ts', 'server\\.ts'),
  http: any('http/[a-z-]+\\.ts', 'app\\.ts'),
  wiring: any('main\\.ts', 'dns/(registry|start)\\.ts', 'dns/local/start\\.ts'),
}

const contract = '^packages/contract/src/'
const npm = name => `/node_modules/${name}/`
const tests = '(\\.test\\.ts$|/test/)'

/** Files of `from` import only what `to` matches; `typesFrom` may be imported as types besides. */
const only = (name, from, to, comment, typesFrom = []) => [
  {
    name,
    comment,
    severity: 'error',
    from: { path: from, pathNot: tests },
    to: { pathNot: [...to, ...typesFrom] },
  },
  ...(typesFrom.length === 0
    ? []
    : [
        {
          name: `${name}-types`,
          comment: `${comment} Those it may name as types only.`,
          severity: 'error',
          from: { path: from, pathNot: tests },
          to: { path: typesFrom, pathNot: to, dependencyTypesNot: ['type-only'] },
        },
      ]),
]

const { rules, ports, verbs, sql, localDns, edges, http, wiring } = rooms

export default {
  forbidden: [
    ...only('contract-imports-zod-only', contract, [contract, npm('zod')], 'The contract is shared by every client.'),
    ...only(
      'rules-are-pure',
      rules,
      [rules, contract],
      'A rule knows the contract and other rules; no library, no I/O.',
    ),
    ...only('ports-name-rules', ports, [rules], 'A port is made of the types of the rules.'),
    ...only(
      'verbs-know-no-adapter',
      verbs,
      [rules, ports, verbs, contract, npm('p-limit'), '^(node:)?timers/promises$'],
      'A verb knows rules, ports and the type of its own store.',
      [sql],
    ),
    ...only(
      'sql-adapts-one-library',
      sql,
      [rules, ports, contract, sql, npm('postgres'), '^(node:)?(crypto|fs/promises|net|timers/promises)$'],
      'The stores adapt the Postgres driver and nothing else.',
    ),
    ...only(
      'local-dns-adapts',
      localDns,
      [
        rules,
        ports,
        localDns,
        npm('dns-packet'),
        npm('@types/dns-packet'),
        npm('postgres'),
        '^(node:)?(buffer|dgram|events|net|stream/promises|timers|timers/promises)$',
      ],
      'The local DNS server adapts its wire library and sockets; its table adapts the driver.',
    ),
    {
      name: 'dns-server-and-table-are-strangers',
      comment: 'An adapter never imports another adapter: the provider composes the two.',
      severity: 'error',
      from: { path: any('dns/local/(message|responder|server|tcp-connection)\\.ts') },
      to: { path: any('dns/local/(zone-table|provider)\\.ts') },
    },
    ...only(
      'edges-adapt',
      edges,
      [rules, npm('pino'), npm('prom-client'), npm('@hono/node-server'), '^(node:)?(crypto|http)$'],
      'Log, metrics and the listening socket adapt one library each.',
      [http, contract, npm('hono'), '^(node:)?stream$'],
    ),
    ...only(
      'http-knows-no-store',
      http,
      [
        rules,
        verbs,
        contract,
        http,
        npm('hono'),
        npm('zod'),
        npm('zod-openapi'),
        npm('swagger-ui-dist'),
        npm('@hono/node-server'),
        '^(node:)?(crypto|fs/promises|module|path)$',
      ],
      'HTTP parses, calls a verb and maps its outcome; it never sees a store or a provider.',
    ),
    {
      name: 'nobody-imports-main',
      comment: 'Whoever wires everything is at the top.',
      severity: 'error',
      from: {},
      to: { path: any('main\\.ts') },
    },
    {
      name: 'wiring-is-at-the-top',
      comment: 'Only wiring imports wiring.',
      severity: 'error',
      from: { pathNot: [wiring, tests] },
      to: { path: wiring },
    },
    {
      name: 'no-app-imports-another',
      comment: 'Apps meet in the contract.',
      severity: 'error',
      from: { path: '^apps/([^/]+)/' },
      to: { path: '^apps/', pathNot: '^apps/$1/' },
    },
    { name: 'no-cycle', severity: 'error', from: {}, to: { circular: true } },
    { name: 'resolvable', severity: 'error', from: {}, to: { couldNotResolve: true } },
    {
      name: 'every-file-has-a-room',
      comment: 'Name the new file in packages/house-rules/imports.mjs.',
      severity: 'error',
      from: { path: `^${api}/`, pathNot: [...Object.values(rooms), tests] },
      to: {},
    },
    {
      name: 'every-imported-file-has-a-room',
      comment: 'Name the new file in packages/house-rules/imports.mjs.',
      severity: 'error',
      from: {},
      to: { path: `^${api}/`, pathNot: [...Object.values(rooms), tests, '\\.sql$'] },
    },
  ],
  options: {
    doNotFollow: { path: 'node_modules' },
    tsPreCompilationDeps: 'specify',
    tsConfig: { fileName: 'tsconfig.json' },
    enhancedResolveOptions: { exportsFields: ['exports'], conditionNames: ['import', 'node', 'default', 'types'] },
  },
}

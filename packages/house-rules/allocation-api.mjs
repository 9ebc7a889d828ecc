import { contract, npm, only } from './only.mjs'

const api = 'apps/allocation-api/src'
const any = (...files) => `^${api}/(${files.join('|')})$`

export const rooms = {
  rules: any(
    'allocation/(allocation|decision|names|reserved-labels|row)\\.ts',
    'convergence/(backoff|breaker|plan|state)\\.ts',
    'deployments/(create-outcome|deployment|domain|next-step|order|redact|result|row|storable|variables)\\.ts',
    'credentials/(attempts|caller-key|failure|settings|token-verdict|verdict)\\.ts',
    'object-storage/(bucket-name|settings|verdict)\\.ts',
    'dns/record-set\\.ts',
    'dns/local/(cname-alone|resolve)\\.ts',
    'observability/(answered|redact)\\.ts',
    '(config|duration|env-reader|json)\\.ts',
    'deployments/terraform/(environment|lines|mask|plain-reason|root-module|said|settings)\\.ts',
    'deployments/terraform/(spellings|telling|text|version)\\.ts',
  ),
  ports: any('dns/(provider|start)\\.ts', 'deployments/infrastructure\\.ts'),
  verbs: any(
    'allocation/(check|commit|converge|get|list|paginate|release|renew|reserve|sweeper)\\.ts',
    'convergence/(calls|compare|converge|drift|pass|turns)\\.ts',
    'deployments/(create|follow|get|log-writer|name|news|remove|run|runs)\\.ts',
    'credentials/validate\\.ts',
    '(periodic|sparingly)\\.ts',
  ),
  sql: any(
    'database/(connect|reachable|schema|socket|taken|together)\\.ts',
    'allocation/(fragments|history|once|reader|store)\\.ts',
    'convergence/(claim|comparison-store|fragments|zone-store)\\.ts',
    'deployments/(line-store|store)\\.ts',
  ),
  localDns: any('dns/local/(message|provider|responder|server|tcp-connection|zone-table)\\.ts'),
  remoteDns: any(
    'dns/(by-owner|exchange|isolate|parts|quoted|record-data|until-aborted|words|cloudflare|dynadot|powerdns|rfc2136)\\.ts',
    'dns/(cloudflare|dynadot|powerdns|rfc2136)/[a-z-]+\\.ts',
  ),
  credentialChecks: any('credentials/(ca-file|https-get|token)\\.ts', 'object-storage/(list-answer|s3)\\.ts'),
  terraform: any('deployments/terraform/(lacks|process-group|terraform|turns|work-folder)\\.ts'),
  edges: any('observability/(log|metrics)\\.ts', 'server\\.ts'),
  http: any('http/[a-z-]+\\.ts', 'app\\.ts'),
  wiring: any(
    '(allocation|convergence|credentials|deployments)/assembly\\.ts',
    'dns/registry\\.ts',
    'dns/local/start\\.ts',
  ),
  entry: any('main\\.ts'),
}

const { rules, ports, verbs, sql, localDns, remoteDns, credentialChecks, terraform, edges, http } = rooms

export const forbidden = [
  ...only('rules-are-pure', rules, [rules, contract], 'A rule knows the contract and other rules; no library, no I/O.'),
  ...only('ports-name-rules', ports, [rules, ports], 'A port is made of the types of the rules.', [sql]),
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
      any('dns/(by-owner|record-data|until-aborted)\\.ts'),
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
    'remote-dns-adapts',
    remoteDns,
    [rules, ports, remoteDns, contract, npm('zod'), '^(node:)?(buffer|crypto|events|net)$'],
    'A provider adapts one API: its wire, and nothing of the service.',
  ),
  ...only(
    'credential-checks-adapt',
    credentialChecks,
    [
      rules,
      credentialChecks,
      contract,
      npm('aws4fetch'),
      npm('fast-xml-parser'),
      npm('zod'),
      '^(node:)?(crypto|fs|http|https|tls)$',
    ],
    'A check of credentials adapts one wire: HTTPS, S3, or a file of certificates.',
  ),
  ...only(
    'terraform-adapts',
    terraform,
    [rules, ports, terraform, '^(node:)?(child_process|fs/promises|path|process|stream|url|util)$'],
    'What makes infrastructure adapts one program: its files, its process, and nothing of the service.',
  ),
  ...only(
    'edges-adapt',
    edges,
    [rules, contract, npm('pino'), npm('prom-client'), npm('@hono/node-server'), '^(node:)?(crypto|http)$'],
    'Log, metrics and the listening socket adapt one library each.',
    [http, npm('hono'), '^(node:)?stream$'],
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
      '^packages/openapi/src/document\\.ts$',
      npm('swagger-ui-dist'),
      npm('@hono/node-server'),
      '^(node:)?(crypto|fs/promises|module|path)$',
    ],
    'HTTP parses, calls a verb and maps its outcome; it never sees a store or a provider.',
  ),
]

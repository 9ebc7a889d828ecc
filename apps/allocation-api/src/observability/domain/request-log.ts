/**
 * One request and its response. `route` is the pattern, not the path: it is bounded and holds nothing that was sent. Of a
 * path, only the id of a deployment is logged, if it has the form of one.
 */
export interface RequestLogEntry {
  readonly requestId: string
  readonly listener: string
  /** Of the client; of the proxy in front of it, if that is not trusted. */
  readonly address: string | null
  readonly deployment?: string | undefined
  readonly method: string
  readonly route: string
  readonly status: number
  readonly outcome: string
  /** Of an error of the database: its SQLSTATE, the code of the connection's error, or which limit of the service it exceeded. */
  readonly cause?: string | undefined
  /** Seconds until the response headers were ready. */
  readonly seconds: number
}

/** Load balancers and Prometheus repeat them, and their results are metrics. */
export const PROBE_ROUTES: ReadonlySet<string> = new Set(['/livez', '/readyz', '/healthz', '/metrics'])

const pool = '/api/v1/pool/:domain'
const deployments = '/api/v1/deployments'
const credentials = '/api/v1/credentials'

const operations: ReadonlyMap<string, string> = new Map([
  [`GET ${pool}/check`, 'check'],
  [`POST ${pool}/reserve`, 'reserve'],
  [`POST ${pool}/commit`, 'commit'],
  [`POST ${pool}/update`, 'update'],
  [`POST ${pool}/renew`, 'renew'],
  [`DELETE ${pool}/release`, 'release'],
  [`GET ${pool}/list`, 'list'],
  [`GET ${pool}/history`, 'history'],
  [`POST ${pool}/converge`, 'converge'],
  [`POST ${pool}/republish`, 'republish'],
  [`POST ${pool}/orphans/adopt`, 'adopt-orphans'],
  [`POST ${pool}/orphans/remove`, 'remove-orphans'],
  [`POST ${pool}/resume`, 'resume'],
  [`GET ${pool}/former-records`, 'list-former-records'],
  ['GET /api/v1/export', 'export'],
  ['POST /api/v1/import', 'import'],
  [`DELETE ${pool}/cool-off/:subdomain`, 'lift-cool-off'],
  [`POST ${deployments}`, 'create-deployment'],
  [`GET ${deployments}`, 'list-deployments'],
  [`GET ${deployments}/:id`, 'get-deployment'],
  [`DELETE ${deployments}/:id`, 'remove-deployment'],
  [`POST ${deployments}/:id/apply`, 'apply-deployment'],
  [`POST ${deployments}/:id/destroy`, 'destroy-deployment'],
  [`POST ${deployments}/:id/plan`, 'plan-deployment'],
  [`POST ${deployments}/:id/unlock`, 'unlock-deployment'],
  [`GET ${deployments}/:id/logs`, 'follow-deployment'],
  [`GET ${deployments}/history`, 'deployment-history'],
  ['POST /api/v1/session', 'start-session'],
  ['DELETE /api/v1/session', 'end-session'],
  ['GET /api/v1/names', 'search-names'],
  [`GET ${pool}/names/:subdomain/records`, 'compare-name-records'],
  [`GET ${pool}/names/:subdomain/plan`, 'plan-name-action'],
  ['POST /api/v1/leases/release', 'release-lease'],
  ['GET /api/v1/buckets', 'list-bucket-claims'],
  ['DELETE /api/v1/buckets/:bucket', 'lift-bucket-claim'],
  ['POST /api/v1/domains/challenge', 'challenge-domain'],
  ['POST /api/v1/domains/check', 'check-domain'],
  [`POST ${credentials}/object-storage/validate`, 'validate-keys'],
  [`POST ${credentials}/validate`, 'validate-token'],
])

const DEPLOYMENT_URL = /^[^/]*\/\/[^/]*\/api\/v1\/deployments\/([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})(?:[/?]|$)/i

/** The deployment that a request is about; undefined if the URL has none, or something else in its place. */
export const toDeploymentId = (route: string, url: string): string | undefined =>
  route.startsWith(`${deployments}/:id`) ? DEPLOYMENT_URL.exec(url)?.[1]?.toLowerCase() : undefined

/** The operation whose outcome is counted, by method and route; HEAD is GET without a body (RFC 9110 section 9.3.2). */
export const toOperation = (method: string, route: string): string | undefined =>
  operations.get(`${method === 'HEAD' ? 'GET' : method} ${route}`)

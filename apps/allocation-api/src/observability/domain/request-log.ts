import { operationList, operations } from '@pool/contract'

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

/** The pattern of a path of the contract. */
export const toRoute = (path: string): string => path.replaceAll(/\{(\w+)\}/g, ':$1')

const counted: ReadonlyMap<string, string> = new Map(
  operationList.flatMap(({ method, path, counted }) =>
    counted === undefined ? [] : [[`${method.toUpperCase()} ${toRoute(path)}`, counted]],
  ),
)

const DEPLOYMENT_ROUTE = toRoute(operations.getDeployment.path)
const DEPLOYMENT_URL = /^[^/]*\/\/[^/]*\/api\/v1\/deployments\/([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})(?:[/?]|$)/i

/** The deployment that a request is about; undefined if the URL has none, or something else in its place. */
export const toDeploymentId = (route: string, url: string): string | undefined =>
  route.startsWith(DEPLOYMENT_ROUTE) ? DEPLOYMENT_URL.exec(url)?.[1]?.toLowerCase() : undefined

/** The operation whose outcome is counted, by method and route; HEAD is GET without a body (RFC 9110 section 9.3.2). */
export const toOperation = (method: string, route: string): string | undefined =>
  counted.get(`${method === 'HEAD' ? 'GET' : method} ${route}`)

import type { ErrorCode } from '@pool/contract'
import { encodeRequest, type HttpRequest } from '@pool/test-kit/http1.ts'
import { poolPath } from '../../support/service.ts'

/** One bad request: the rule that it breaks, the bytes, and the answer that the contract gives it. */
export interface BadRow {
  readonly rule: string
  /** Made when it is sent, because some need the token of a reservation. */
  readonly bytes: (given: Given) => Buffer
  readonly status: number
  readonly code: ErrorCode
  /** For a request with many fields: every invalid field, in this order. */
  readonly fields?: readonly string[]
}

/** What was there before the first bad request. */
export interface Given {
  /** Of the reservation of `held`. */
  readonly token: string
}

type Code = readonly [status: number, code: ErrorCode]

export const row = (
  rule: string,
  [status, code]: Code,
  request: HttpRequest | ((given: Given) => HttpRequest),
): BadRow => ({
  rule,
  status,
  code,
  bytes: given => encodeRequest(typeof request === 'function' ? request(given) : request),
})

export const rawRow = (rule: string, [status, code]: Code, bytes: string | Buffer): BadRow => ({
  rule,
  status,
  code,
  bytes: () => (typeof bytes === 'string' ? Buffer.from(bytes, 'latin1') : bytes),
})

/** Text and bytes are sent as they are, all else as JSON. */
export const postTo = (path: string, body: unknown, headers: readonly string[] = []): HttpRequest => ({
  method: 'POST',
  path,
  body: typeof body === 'string' || body instanceof Uint8Array ? body : JSON.stringify(body),
  headers,
})

export const post = (verb: string, body: unknown, headers?: readonly string[]) =>
  postTo(`${poolPath}/${verb}`, body, headers)

export const reserve = (body: unknown, headers?: readonly string[]) => post('reserve', body, headers)

/** A good commit of `held`, changed in one point. `undefined` leaves the field out. */
export const commitWith =
  (change: object, subdomain = 'held') =>
  ({ token }: Given): HttpRequest =>
    post('commit', {
      subdomain,
      reservationToken: token,
      sovereignFQDN: `${subdomain}.pool.test`,
      loadBalancerIP: '203.0.113.10',
      ...change,
    })

export const remove = (body: unknown, headers: readonly string[] = []): HttpRequest => ({
  method: 'DELETE',
  path: `${poolPath}/release`,
  headers,
  ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
})

export const deployments = '/api/v1/deployments'

/** A good request for a deployment of a domain of one's own, which takes no name of a pool. */
const goodDeployment = {
  orgName: 'Acme',
  orgEmail: 'ops@acme.example',
  sovereignDomainMode: 'byo',
  sovereignFQDN: 'cloud.acme.example',
  providers: ['local'],
  region: 'fsn1',
  sshPublicKey: 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f ops@acme',
}

export const create = (body: unknown, headers?: readonly string[]) => postTo(deployments, body, headers)

/** A good request for a deployment, changed in some points. `undefined` leaves a field out. */
export const createWith = (change: object) => create({ ...goodDeployment, ...change })

/** Well-formed keys that no account has. */
export const storageFields = {
  providers: ['hetzner'],
  objectStorageRegion: 'fsn1',
  objectStorageAccessKey: 'access-key-0123456789',
  objectStorageSecretKey: 'secret-key-of-thirty-two-characters-and-more',
}

/** A request for a deployment that is rejected for what these fields hold, and for nothing else. */
export const faultyRow = (rule: string, request: HttpRequest, ...fields: readonly string[]): BadRow => ({
  ...row(`deployment: ${rule}`, [400, 'invalid-deployment'], request),
  fields,
})

/** How a value looks in the name of a test. */
export const shown = (value: unknown): string => {
  const text = JSON.stringify(value) ?? 'nothing'
  const visible = text.replace(/[^\x20-\x7e]/gu, char => `U+${char.codePointAt(0)?.toString(16).padStart(4, '0')}`)
  return visible.length > 60 ? `${visible.slice(0, 40)}… (${text.length} characters)` : visible
}

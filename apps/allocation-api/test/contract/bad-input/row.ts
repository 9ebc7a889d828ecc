import type { ErrorCode } from '@pool/contract'
import { encodeRequest, type HttpRequest } from '@pool/test-kit/http1.ts'
import { poolPath } from '../../support/service.ts'

/** An invalid request: the violated rule, the bytes, and the response that the contract requires. */
export interface BadRow {
  readonly rule: string
  /** Called when the request is sent, because some requests need the token of a reservation. */
  readonly toBytes: (given: RowContext) => Buffer
  readonly status: number
  readonly code: ErrorCode
  /** The invalid fields of a deployment request, in the order of the response. */
  readonly fields?: readonly string[]
}

/** Created before the first invalid request. */
export interface RowContext {
  /** The token of the reservation of `held`. */
  readonly token: string
}

type Code = readonly [status: number, code: ErrorCode]

export const row = (
  rule: string,
  [status, code]: Code,
  request: HttpRequest | ((given: RowContext) => HttpRequest),
): BadRow => ({
  rule,
  status,
  code,
  toBytes: given => encodeRequest(typeof request === 'function' ? request(given) : request),
})

export const malformed = (rule: string, bytes: string | Buffer, status: 400 | 431 = 400): BadRow => ({
  rule,
  status,
  code: 'invalid-format',
  toBytes: () => (typeof bytes === 'string' ? Buffer.from(bytes, 'latin1') : bytes),
})

/** Strings and bytes are sent unchanged, other values as JSON. */
export const postTo = (path: string, body: unknown, headers: readonly string[] = []): HttpRequest => ({
  method: 'POST',
  path,
  body: typeof body === 'string' || body instanceof Uint8Array ? body : JSON.stringify(body),
  headers,
})

export const post = (verb: string, body: unknown, headers?: readonly string[]) =>
  postTo(`${poolPath}/${verb}`, body, headers)

export const reserve = (body: unknown, headers?: readonly string[]) => post('reserve', body, headers)

/** A valid commit of `held` with a change. `undefined` removes a field. */
export const commitWith =
  (change: object, subdomain = 'held') =>
  ({ token }: RowContext): HttpRequest =>
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

export const sshPublicKey = 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f'

/** A valid deployment request for a domain of the tenant (`byo`), which needs no name of a pool. */
const validDeployment = {
  orgName: 'Acme',
  orgEmail: 'ops@acme.example',
  sovereignDomainMode: 'byo',
  sovereignFQDN: 'cloud.acme.example',
  providers: ['local'],
  region: 'fsn1',
  sshPublicKey: `${sshPublicKey} ops@acme`,
}

export const create = (body: unknown, headers?: readonly string[]) => postTo(deployments, body, headers)

/** A valid deployment request with changes. `undefined` removes a field. */
export const createWith = (change: object) => create({ ...validDeployment, ...change })

/** Well-formed credentials that do not exist. */
export const storageFields = {
  providers: ['hetzner'],
  objectStorageRegion: 'fsn1',
  objectStorageAccessKey: 'access-key-0123456789',
  objectStorageSecretKey: 'secret-key-of-thirty-two-characters-and-more',
}

/** A deployment request in which exactly these fields are invalid. */
export const invalidDeploymentRow = (rule: string, request: HttpRequest, ...fields: readonly string[]): BadRow => ({
  ...row(`deployment: ${rule}`, [400, 'invalid-deployment'], request),
  fields,
})

/** The form of a value in a test title. */
export const describeValue = (value: unknown): string => {
  const text = JSON.stringify(value) ?? 'nothing'
  const visible = text.replace(/[^\x20-\x7e]/gu, char => `U+${char.codePointAt(0)?.toString(16).padStart(4, '0')}`)
  return visible.length > 60 ? `${visible.slice(0, 40)}… (${text.length} characters)` : visible
}

import * as z from 'zod'
import { createProblemSchema, createRules, defineErrors, type ErrorStatus, listCodes } from './problem.ts'

/** How the `detail` of a 404 begins if the listener does not have the path. Clients compare it: never change it. */
export const NO_ROUTE = 'No such route'

/** Every error of the allocation API. */
export const errors = defineErrors({
  'invalid-json': [400, 'The body must be JSON in UTF-8.'],
  'invalid-limit': [422, 'limit must be a whole number in the documented range.'],
  'invalid-cursor': [422, 'The position is not one that an earlier response had.'],
  unauthorized: [401, 'Operator token required: send Authorization: Bearer <token>.'],
  'not-found': [404, 'No such allocation: it was released, has expired or never existed. Reserve the name first.'],
  'method-not-allowed': [405, 'Method not allowed; see the Allow header.'],
  'request-timeout': [408, 'The body did not arrive within 10 s; send the request again.'],
  'body-too-large': [413, 'The body must not be larger than 64 KiB.'],
  'unsupported-encoding': [415, 'The body must have no Content-Encoding.'],
  'internal-error': [500, 'Internal error. Quote requestId when reporting it.'],
  'invalid-format': [422, 'A field of the request does not have the documented form.'],
  'invalid-state': [422, 'A filter or a flag of the query has none of the documented values.'],
  'unknown-parameter': [422, 'The query has a parameter that this request does not take.'],
  'invalid-idempotency-key': [400, 'Idempotency-Key must be 1 to 255 visible ASCII characters.'],
  'invalid-fqdn': [422, 'The domain name is not valid, or not the one of the name.'],
  'invalid-lb-ip': [422, 'An address of the load balancer must be a unicast IPv4 or IPv6 address.'],
  'invalid-lb-hostname': [422, 'loadBalancerHostname must be a host name that is not at or below the name.'],
  'invalid-nameservers': [
    422,
    'nameservers must be 2 to 8 host names outside the name, with a provider that has NS records.',
  ],
  'invalid-ds': [422, 'ds must be 1 to 8 DS records.'],
  'invalid-target': [422, 'A name has one form of target: addresses, a host name, or name servers.'],
  'invalid-deployment': [
    400,
    'A field is invalid or changes what cannot change, or credentials are missing or rejected.',
  ],
  'missing-lb-ip': [422, 'loadBalancerIP or another target is required.'],
  'missing-token': [422, 'A token is required.'],
  'unsupported-pool': [422, 'This service does not manage the pool.'],
  'pool-draining': [422, 'The pool is being removed and gives no names.'],
  reserved: [422, 'The label is reserved; choose another name.'],
  'idempotency-key-reused': [422, 'This Idempotency-Key was already used with a different request; use a new key.'],
  forbidden: [403, 'A web page of another origin sent the request.'],
  'token-mismatch': [403, 'reservationToken does not match this allocation.'],
  conflict: [409, 'The name is taken; choose another name or wait until it is released.'],
  'cooling-off': [409, 'The name was released; only its former client can reserve it before `availableAt`.'],
  'subdomain-conflict': [409, 'The subdomain is taken; choose another one.'],
  'bucket-conflict': [
    409,
    'The bucket derived from this FQDN belongs to another deployment or account; choose another name.',
  ],
  'bucket-exists': [
    409,
    'The bucket derived from this FQDN exists; send adoptBucket: true to use it with its content.',
  ],
  'fqdn-conflict': [409, 'Another deployment has this FQDN; remove that deployment first or choose another name.'],
  'fqdn-remains': [409, 'Infrastructure of an earlier deployment of this FQDN remains.'],
  'domain-not-proven': [409, 'A TXT record must prove the domain: request it at POST /api/v1/domains/challenge.'],
  'in-progress': [409, 'A run of this deployment is in progress, or it is being abandoned; wait for its end.'],
  'destroy-incomplete': [409, 'A destroy of this deployment failed; destroy it again before anything else.'],
  'still-up': [409, 'Infrastructure of the deployment may exist; destroy it first.'],
  'plan-failed': [409, 'Terraform could not plan; the detail has the reason.'],
  'lock-not-recorded': [409, 'No run of this deployment is known to have left a lock.'],
  'already-active': [409, 'The name is already committed.'],
  'not-active': [409, 'The name is only reserved; commit it first.'],
  'too-many-tokens': [409, 'The name has as many tokens or owners as it can have; delete one of them first.'],
  'not-supported': [409, 'This installation does not have the scope; PDM_RECORDS decides.'],
  'invalid-scope': [422, 'scope must be "acme" or "records".'],
  'invalid-owner': [422, 'owner must be 1 to 63 characters a-z, 0-9 and "-".'],
  'outside-scope': [403, 'The token does not permit this record: its scope, or the name, is another one.'],
  'no-registration': [
    403,
    'Accounts are not registered here: the holder of the name mints a token, whose response has the account.',
  ],
  'record-conflict': [
    409,
    'Another owner has the record set, or a CNAME would be beside other records; delete the other set first.',
  ],
  'template-record': [409, 'The service itself sets the addresses of this name; change them with an update.'],
  delegated: [409, 'The name is delegated to name servers of its own; set the record there.'],
  'invalid-record': [422, 'The name, the type, the TTL or a value of the record is not valid.'],
  'type-not-allowed': [422, 'This installation does not permit records of this type; PDM_RECORDS_TYPES decides.'],
  'too-many-records': [422, 'The name has as many record sets or bytes of values as it can have; delete some first.'],
  'dns-pending': [
    503,
    'The change is stored; the DNS provider does not have it yet. Repeat the request until it succeeds.',
  ],
  'reservation-expired': [410, 'The reservation has expired; reserve the name again.'],
  'database-unavailable': [
    503,
    'The database did not respond. Whether a write took effect is unknown: read, or retry with an Idempotency-Key.',
  ],
  'database-read-only': [
    503,
    'The database accepts no writes: it is read-only, a standby, or its disk is full. The write did not take effect; retry later.',
  ],
  'dns-unavailable': [503, 'The DNS provider did not respond, or another replica is updating the zone; retry later.'],
  'dns-writes-off': [409, 'PDM_DNS_WRITES=off is set; start the service without it, then resume.'],
  'not-stopped': [409, 'The zone is written; there is nothing to resume.'],
  'provisioning-unavailable': [503, 'Provisioning is not possible at the moment; retry later.'],
  'missing-region': [400, 'region is required.'],
  'invalid-region': [400, 'The object storage does not have this region.'],
  'invalid-access-key': [400, 'accessKey does not have the form of an access key.'],
  'invalid-secret-key': [400, 'secretKey does not have the form of a secret key.'],
  'invalid-token': [400, 'token does not have the form of a token.'],
  'unsupported-provider': [400, 'The service cannot check the credentials of this provider.'],
  'rate-limited': [429, 'Too many writes from this address; retry after the seconds in Retry-After.'],
  'too-many-attempts': [429, 'Too many attempts from this address; retry after the seconds in Retry-After.'],
  'object-storage-unavailable': [503, 'The keys could not be checked; they may be valid.'],
  'provider-unavailable': [503, 'The token could not be checked; it may be valid.'],
  overloaded: [
    503,
    'Too many connections or unfinished bodies; nothing was done. Retry after the seconds in Retry-After.',
  ],
  'too-many-readers': [503, 'Too many lists or files are being read; retry later.'],
  'invalid-import': [422, 'The body is not a complete export that this build can read. Nothing was changed.'],
  'not-empty': [409, 'The database has rows. Nothing was changed.'],
  'lease-changed': [409, 'The lease has another holder or generation now; read it again.'],
  'witness-unavailable': [503, 'The witness did not respond, or it rejects the token of this service.'],
})

export type ErrorCode = keyof typeof errors

/** The prefix of everything that tools of tenants call: it accepts their tokens only, and bodies up to 1 MiB. */
export const RECORDS_PATH = '/api/v1/records'
export const MAX_RECORDS_BODY_BYTES = 1_024 * 1_024
const EXTERNAL_DNS_PATH = `${RECORDS_PATH}/external-dns`

const isAtOrBelow = (path: string, prefix: string): boolean => path === prefix || path.startsWith(`${prefix}/`)

export const isRecordsPath = (path: string): boolean => isAtOrBelow(path, RECORDS_PATH)

/**
 * The status of an error at this path. external-dns exits at every 4xx, and so does its controller, for all names: only what
 * its operator has to change may end it.
 */
export const toErrorStatus = (code: ErrorCode, path: string): ErrorStatus => {
  const [status] = errors[code]
  const canPass = status === 408 || status === 409 || status === 422 || status === 429
  return canPass && isAtOrBelow(path, EXTERNAL_DNS_PATH) ? 503 : status
}

export const errorCodes = listCodes(errors)
const errorCode = z.enum(errorCodes).meta({ id: 'ErrorCode' })

export const problem = createProblemSchema(errorCode).meta({ id: 'Problem' })
export type Problem = z.infer<typeof problem>

/** What is wrong with one field of a request. It is an item of the field `faults`. */
export const fieldFault = z
  .object({
    field: z.string().meta({ description: 'Empty if the body as a whole is invalid.' }),
    detail: z.string(),
  })
  .meta({ id: 'FieldFault' })
export type FieldFault = Readonly<z.infer<typeof fieldFault>>

/** The error body of a request with many fields, so that a form can show every invalid field. */
export const deploymentProblem = problem
  .extend({
    field: z
      .string()
      .optional()
      .meta({ description: 'With `invalid-deployment`: the first invalid field, which `detail` describes.' }),
    faults: z
      .array(fieldFault)
      .min(1)
      .optional()
      .meta({ description: 'With `invalid-deployment`: every invalid field, once, in the order of the request.' }),
  })
  .meta({ id: 'DeploymentProblem' })
export type DeploymentProblem = z.infer<typeof deploymentProblem>

export const { rule, violation, firstViolation } = createRules(errorCodes, 'invalid-format')

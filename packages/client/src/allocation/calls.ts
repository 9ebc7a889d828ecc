import { problem } from '@pool/contract'
import type { CallOptions, ClientOptions } from '../options.ts'
import { createRandomId, systemTiming, type Timing } from '../timing.ts'
import { createTransport, type Transport } from '../transport.ts'
import { type AllocationOperationId, callRules } from './call-rules.ts'
import { findOperation, type Params, type Result, toRequestParts, type WriteOptions } from './params.ts'

/** A call of any operation. */
type Call = (...args: never[]) => Promise<unknown>

/**
 * One method for each operation of the allocation API, under the operation's id. A new operation without a method does not
 * compile. Every method rejects with a ClientError, with the reason of an aborted signal, or with a TypeError if a
 * parameter cannot be sent. docs/reference/api.md describes the semantics.
 */
export class AllocationCalls implements Readonly<Record<AllocationOperationId, Call>> {
  readonly #transport: Transport
  protected readonly timing: Timing

  /** Throws a TypeError if an option is invalid. */
  constructor(options: ClientOptions) {
    this.#transport = createTransport(options, problem)
    this.timing = options.timing ?? systemTiming
  }

  /** Calls an operation, under a new Idempotency-Key if it takes one and the caller has none. */
  protected async request<Id extends AllocationOperationId>(
    id: Id,
    params: Readonly<Record<string, unknown>>,
    options: WriteOptions = {},
  ): Promise<Result<Id>> {
    const operation = findOperation(id)
    const parts = toRequestParts(operation, params)
    const rule = callRules[id]
    const key = rule.repeat === 'under-key' ? { 'Idempotency-Key': options.idempotencyKey ?? createRandomId() } : {}
    const request = { ...parts, headers: { ...parts.headers, ...key } }
    const { body } = await this.#transport.call(operation, request, rule, options)
    // The operation has this id.
    return body as Result<Id>
  }

  /** Returns the labels that no tenant can reserve, sorted. */
  listReservedLabels(options?: CallOptions): Promise<Result<'listReservedLabels'>> {
    return this.request('listReservedLabels', {}, options)
  }

  /** Returns whether a name is free: read `available`. */
  checkName(params: Params<'checkName'>, options?: CallOptions): Promise<Result<'checkName'>> {
    return this.request('checkName', params, options)
  }

  /** Reserves a free name for a limited time. Only this response has the reservation token. */
  reserveName(params: Params<'reserveName'>, options?: WriteOptions): Promise<Result<'reserveName'>> {
    return this.request('reserveName', params, options)
  }

  /** Activates a reserved name and publishes its records. A response with `warning`: they are not published yet. */
  commitName(params: Params<'commitName'>, options?: WriteOptions): Promise<Result<'commitName'>> {
    return this.request('commitName', params, options)
  }

  /** Changes the address of an active name. A response with `warning`: its records are not published yet. */
  updateName(params: Params<'updateName'>, options?: WriteOptions): Promise<Result<'updateName'>> {
    return this.request('updateName', params, options)
  }

  /** Ends the cool-off of a released name. Operator listener. */
  liftCoolOff(params: Params<'liftCoolOff'>, options?: CallOptions): Promise<Result<'liftCoolOff'>> {
    return this.request('liftCoolOff', params, options)
  }

  /** Extends a reservation by its full lifetime from now, up to its maximum age. */
  renewReservation(params: Params<'renewReservation'>, options?: CallOptions): Promise<Result<'renewReservation'>> {
    return this.request('renewReservation', params, options)
  }

  /** Releases a name and deletes its records. A response with `warning`: some are not deleted yet. */
  releaseName(params: Params<'releaseName'>, options?: WriteOptions): Promise<Result<'releaseName'>> {
    return this.request('releaseName', params, options)
  }

  /** Returns one allocation with the status of its records. See `waitUntilPublished`. */
  getAllocation(params: Params<'getAllocation'>, options?: CallOptions): Promise<Result<'getAllocation'>> {
    return this.request('getAllocation', params, options)
  }

  /** Lists the allocations of a pool, all of them without `limit`. See `allocations`. */
  listAllocations(params: Params<'listAllocations'>, options?: CallOptions): Promise<Result<'listAllocations'>> {
    return this.request('listAllocations', params, options)
  }

  /** Lists the transitions of a pool, or of one name with `sub`, newest first. See `historyEntries`. */
  readHistory(params: Params<'readHistory'>, options?: CallOptions): Promise<Result<'readHistory'>> {
    return this.request('readHistory', params, options)
  }

  /** Compares a zone with its desired records and repairs it, or lists the changes only. Operator listener. */
  convergeZone(params: Params<'convergeZone'>, options?: CallOptions): Promise<Result<'convergeZone'>> {
    return this.request('convergeZone', params, options)
  }

  /** Brings the records of the active names to the current template, or lists the changes only. Operator listener. */
  republishZone(params: Params<'republishZone'>, options?: CallOptions): Promise<Result<'republishZone'>> {
    return this.request('republishZone', params, options)
  }

  /** Starts the writes to a stopped zone again, or lists the differences only. Operator listener. */
  resumeZone(params: Params<'resumeZone'>, options?: CallOptions): Promise<Result<'resumeZone'>> {
    return this.request('resumeZone', params, options)
  }

  /** Lists the records that an earlier DNS provider has from before a move. See `formerRecords`. Operator listener. */
  listFormerRecords(params: Params<'listFormerRecords'>, options?: CallOptions): Promise<Result<'listFormerRecords'>> {
    return this.request('listFormerRecords', params, options)
  }

  /** Makes allocations of records that no allocation explains, or lists them only. Operator listener. */
  adoptOrphans(params: Params<'adoptOrphans'>, options?: CallOptions): Promise<Result<'adoptOrphans'>> {
    return this.request('adoptOrphans', params, options)
  }

  /** Deletes the records that no allocation explains, or lists them only. Operator listener. */
  removeOrphans(params: Params<'removeOrphans'>, options?: CallOptions): Promise<Result<'removeOrphans'>> {
    return this.request('removeOrphans', params, options)
  }

  /** Reserves the name, derives the bucket and starts provisioning. Only this response has the deployment token. */
  createDeployment(params: Params<'createDeployment'>, options?: WriteOptions): Promise<Result<'createDeployment'>> {
    return this.request('createDeployment', params, options)
  }

  /** Lists the deployments, newest first, 100 by default. See `deployments`. */
  listDeployments(params: Params<'listDeployments'> = {}, options?: CallOptions): Promise<Result<'listDeployments'>> {
    return this.request('listDeployments', params, options)
  }

  /** Lists what was done to deployments, newest first. See `deploymentHistoryEntries`. Operator listener. */
  readDeploymentHistory(
    params: Params<'readDeploymentHistory'> = {},
    options?: CallOptions,
  ): Promise<Result<'readDeploymentHistory'>> {
    return this.request('readDeploymentHistory', params, options)
  }

  /** Returns one deployment, without its credentials. */
  getDeployment(params: Params<'getDeployment'>, options?: CallOptions): Promise<Result<'getDeployment'>> {
    return this.request('getDeployment', params, options)
  }

  /** Applies the current module again, also with new input. It is not repeated if it may have started. */
  applyDeployment(params: Params<'applyDeployment'>, options?: CallOptions): Promise<Result<'applyDeployment'>> {
    return this.request('applyDeployment', params, options)
  }

  /** Returns what an apply or a destroy would do. The service takes as long as Terraform does. */
  planDeployment(params: Params<'planDeployment'>, options?: CallOptions): Promise<Result<'planDeployment'>> {
    return this.request('planDeployment', params, options)
  }

  /**
   * Destroys the infrastructure but for the bucket, then releases the name. It is not repeated if it may have started.
   */
  destroyDeployment(params: Params<'destroyDeployment'>, options?: CallOptions): Promise<Result<'destroyDeployment'>> {
    return this.request('destroyDeployment', params, options)
  }

  /** Lifts the state lock that a run of this deployment left. Operator listener. */
  unlockDeployment(params: Params<'unlockDeployment'>, options?: CallOptions): Promise<Result<'unlockDeployment'>> {
    return this.request('unlockDeployment', params, options)
  }

  /**
   * Cancels a run in progress, or deletes a finished deployment of which nothing remains: then undefined. It is not repeated,
   * because the second request could delete what the first cancelled.
   */
  removeDeployment(params: Params<'removeDeployment'>, options?: CallOptions): Promise<Result<'removeDeployment'>> {
    return this.request('removeDeployment', params, options)
  }

  /** Returns the bytes of the log as server-sent events. See `followLogs`. */
  followDeployment(params: Params<'followDeployment'>, options?: CallOptions): Promise<Result<'followDeployment'>> {
    return this.request('followDeployment', params, options)
  }

  /** Lists the bucket claims by name of the bucket, 100 by default. See `bucketClaims`. Operator listener. */
  listBucketClaims(
    params: Params<'listBucketClaims'> = {},
    options?: CallOptions,
  ): Promise<Result<'listBucketClaims'>> {
    return this.request('listBucketClaims', params, options)
  }

  /** Lifts a bucket claim, so that another deployment can derive this bucket. Operator listener. */
  liftBucketClaim(params: Params<'liftBucketClaim'>, options?: CallOptions): Promise<Result<'liftBucketClaim'>> {
    return this.request('liftBucketClaim', params, options)
  }

  /** Returns the bytes of an export as newline-delimited JSON. See `exportLines`. Operator listener. */
  exportInstallation(options?: CallOptions): Promise<Result<'exportInstallation'>> {
    return this.request('exportInstallation', {}, options)
  }

  /**
   * Imports an export into an empty database, or the names of one pool into another. It is never repeated. Operator listener.
   */
  importInstallation(
    params: Params<'importInstallation'>,
    options?: CallOptions,
  ): Promise<Result<'importInstallation'>> {
    return this.request('importInstallation', params, options)
  }

  /** Exchanges an operator token for the session cookie of a browser. Operator listener. */
  startSession(params: Params<'startSession'>, options?: CallOptions): Promise<Result<'startSession'>> {
    return this.request('startSession', params, options)
  }

  /** Returns the session of the request's cookie. Operator listener. */
  getSession(options?: CallOptions): Promise<Result<'getSession'>> {
    return this.request('getSession', {}, options)
  }

  /** Ends the session of the request's cookie. Operator listener. */
  endSession(options?: CallOptions): Promise<Result<'endSession'>> {
    return this.request('endSession', {}, options)
  }

  /** Returns what a client needs to know of the configuration. Operator listener. */
  getSettings(options?: CallOptions): Promise<Result<'getSettings'>> {
    return this.request('getSettings', {}, options)
  }

  /** Searches the names that are not free, in all pools. A page can be short although others follow. See `names`. Operator listener. */
  searchNames(params: Params<'searchNames'> = {}, options?: CallOptions): Promise<Result<'searchNames'>> {
    return this.request('searchNames', params, options)
  }

  /** Returns a name with its desired records and its deployment, even if it is free. Operator listener. */
  describeName(params: Params<'describeName'>, options?: CallOptions): Promise<Result<'describeName'>> {
    return this.request('describeName', params, options)
  }

  /** Reads the records of a name from the zone and compares them with the desired ones. Operator listener. */
  compareNameRecords(
    params: Params<'compareNameRecords'>,
    options?: CallOptions,
  ): Promise<Result<'compareNameRecords'>> {
    return this.request('compareNameRecords', params, options)
  }

  /** Returns what a release, an update or the lift of a cool-off would do. Operator listener. */
  planNameAction(params: Params<'planNameAction'>, options?: CallOptions): Promise<Result<'planNameAction'>> {
    return this.request('planNameAction', params, options)
  }

  /** Lists the zones with their health. Operator listener. */
  listZones(options?: CallOptions): Promise<Result<'listZones'>> {
    return this.request('listZones', {}, options)
  }

  /** Returns series of the last week at most, for small plots. Operator listener. */
  readOverview(params: Params<'readOverview'> = {}, options?: CallOptions): Promise<Result<'readOverview'>> {
    return this.request('readOverview', params, options)
  }

  /** Returns the bytes of the server-sent events that name what has changed. See `changes`. Operator listener. */
  followChanges(params: Params<'followChanges'> = {}, options?: CallOptions): Promise<Result<'followChanges'>> {
    return this.request('followChanges', params, options)
  }

  /** Lists leases of the witness that the service is configured with, or reads those of named slots. Operator listener. */
  listWitnessLeases(
    params: Params<'listWitnessLeases'> = {},
    options?: CallOptions,
  ): Promise<Result<'listWitnessLeases'>> {
    return this.request('listWitnessLeases', params, options)
  }

  /** Lists the last changes of the holder of a slot, newest first. Operator listener. */
  readWitnessHistory(
    params: Params<'readWitnessHistory'>,
    options?: CallOptions,
  ): Promise<Result<'readWitnessHistory'>> {
    return this.request('readWitnessHistory', params, options)
  }

  /** Releases the lease of a dead holder, if it still has this holder and this generation. Operator listener. */
  releaseWitnessLease(
    params: Params<'releaseWitnessLease'>,
    options?: CallOptions,
  ): Promise<Result<'releaseWitnessLease'>> {
    return this.request('releaseWitnessLease', params, options)
  }

  /** Returns the TXT record that proves the control of a domain, for a deployment in mode `byo`. */
  createDomainChallenge(
    params: Params<'createDomainChallenge'>,
    options?: WriteOptions,
  ): Promise<Result<'createDomainChallenge'>> {
    return this.request('createDomainChallenge', params, options)
  }

  /** Returns whether a deployment can have a domain. The Idempotency-Key is that of its challenge. Only for operators. */
  checkDomain(params: Params<'checkDomain'>, options?: WriteOptions): Promise<Result<'checkDomain'>> {
    return this.request('checkDomain', params, options)
  }

  /** Returns whether the object storage accepts these keys: read `valid`. */
  validateObjectStorageKeys(
    params: Params<'validateObjectStorageKeys'>,
    options?: CallOptions,
  ): Promise<Result<'validateObjectStorageKeys'>> {
    return this.request('validateObjectStorageKeys', params, options)
  }

  /** Returns whether a provider accepts this API token: read `valid`. */
  validateToken(params: Params<'validateToken'>, options?: CallOptions): Promise<Result<'validateToken'>> {
    return this.request('validateToken', params, options)
  }

  /** Returns whether the service and its database work. */
  getHealth(options?: CallOptions): Promise<Result<'getHealth'>> {
    return this.request('getHealth', {}, options)
  }

  /** Returns whether the process responds. */
  getLiveness(options?: CallOptions): Promise<Result<'getLiveness'>> {
    return this.request('getLiveness', {}, options)
  }

  /** Returns whether the process should receive requests. */
  getReadiness(options?: CallOptions): Promise<Result<'getReadiness'>> {
    return this.request('getReadiness', {}, options)
  }

  /** Returns the metrics in the Prometheus text format. */
  getMetrics(options?: CallOptions): Promise<Result<'getMetrics'>> {
    return this.request('getMetrics', {}, options)
  }

  /** Returns the OpenAPI document. */
  getOpenApiDocument(options?: CallOptions): Promise<Result<'getOpenApiDocument'>> {
    return this.request('getOpenApiDocument', {}, options)
  }

  /** Returns the API reference as a web page. */
  getApiReference(options?: CallOptions): Promise<Result<'getApiReference'>> {
    return this.request('getApiReference', {}, options)
  }

  /** Returns a script or a style sheet of the API reference. */
  getApiReferenceAsset(
    params: Params<'getApiReferenceAsset'>,
    options?: CallOptions,
  ): Promise<Result<'getApiReferenceAsset'>> {
    return this.request('getApiReferenceAsset', params, options)
  }
}

import {
  type AllocationOperation,
  type CallId,
  callOperations,
  type DeploymentPlan,
  NO_ROUTE,
  problem,
} from '@pool/contract'
import type * as z from 'zod'
import { ProblemError } from '../errors.ts'
import {
  CALL_OPTIONS,
  type CallOptions,
  type ClientOptions,
  checkOptions,
  type OptionKinds,
  type Service,
} from '../options.ts'
import { createRandomId } from '../timing.ts'
import { createTransport, type Transport } from '../transport.ts'
import { dryRunRule, toCallRule } from './call-rules.ts'
import { type Params, type Result, toRequestParts, type WriteOptions } from './params.ts'

type Options<Id extends CallId> = (typeof callOperations)[Id] extends { readonly key: true }
  ? WriteOptions
  : CallOptions

/** Parameters come first, if the operation has any; they can be absent if none is required. */
type Arguments<Id extends CallId> = [keyof Params<Id>] extends [never]
  ? [options?: Options<Id>]
  : Record<never, never> extends Params<Id>
    ? [params?: Params<Id>, options?: Options<Id>]
    : [params: Params<Id>, options?: Options<Id>]

interface CallWithDryRun<Id extends CallId, Plan> {
  /** Changes nothing. Resolves with what the operation would do. */
  (params: Params<Id> & { readonly dryRun: true }, options?: Options<Id>): Promise<Plan>
  (params: Omit<Params<Id>, 'dryRun'> & { readonly dryRun?: false }, options?: Options<Id>): Promise<Result<Id>>
}

/**
 * One method for each operation of the allocation API, under the operation's id. Every method rejects with a ClientError,
 * with the reason of an aborted signal, or with a TypeError if a parameter cannot be sent. docs/reference/api.md describes
 * the semantics.
 */
export type AllocationCalls = {
  readonly [Id in CallId]: (typeof callOperations)[Id] extends {
    readonly plan: infer Plan extends z.ZodType
  }
    ? CallWithDryRun<Id, z.output<Plan>>
    : (...args: Arguments<Id>) => Promise<Result<Id>>
}

type CallArguments = readonly (WriteOptions | undefined)[]

/** A plan that failed after its response had begun: the error is in a 200. */
const throwLateProblem = (operation: CallId, result: unknown, headers: Headers): void => {
  const { problem: body }: Partial<DeploymentPlan> = operation === 'planDeployment' ? Object(result) : {}
  if (!body) return
  const requestId = headers.get('X-Request-Id') ?? ''
  const failure = { operation, attempts: 1, requestId, isOutcomeUnknown: false }
  throw new ProblemError(failure, { status: 409, body, retryAfter: undefined })
}

const WRITE_OPTIONS: OptionKinds<WriteOptions> = { ...CALL_OPTIONS, idempotencyKey: 'any' }

/** Sends the request of an operation, under a new Idempotency-Key if it takes one and the caller has none. */
const createCall = (id: CallId) => {
  const operation: AllocationOperation = callOperations[id]
  const { pathParams, query, headers: headerFields, body } = operation
  const hasParams = [pathParams, query, headerFields, body].some(part => part !== undefined)
  return async (transport: Transport, args: CallArguments): Promise<unknown> => {
    const [params, allOptions = {}] = hasParams ? args : [{}, ...args]
    checkOptions<CallOptions>(id, allOptions, operation.key ? WRITE_OPTIONS : CALL_OPTIONS)
    const { idempotencyKey, ...options } = allOptions
    const parts = toRequestParts(operation, { ...params })
    const rule = operation.plan && parts.query?.dryRun === true ? dryRunRule : toCallRule(id)
    const key = rule.repeat === 'under-key' ? { 'Idempotency-Key': idempotencyKey ?? createRandomId() } : {}
    const request = { ...parts, headers: { ...parts.headers, ...key } }
    const { body: result, headers } = await transport.call(operation, request, rule, options)
    throwLateProblem(id, result, headers)
    return result
  }
}

const SERVICE: Service = {
  operations: callOperations,
  problem,
  isOwn: ({ error, detail }) => error !== 'not-found' || !detail?.startsWith(NO_ROUTE),
}

class OperationCalls {
  readonly #transport: Transport

  constructor(options: ClientOptions) {
    this.#transport = createTransport(options, SERVICE)
  }

  static {
    for (const id of Object.keys(callOperations) as CallId[]) {
      const call = createCall(id)
      const method = function (this: OperationCalls, ...args: CallArguments) {
        return call(this.#transport, args)
      }
      Object.defineProperty(OperationCalls.prototype, id, { value: method, writable: true, configurable: true })
    }
  }
}

/** The class whose instances have these methods. Throws a TypeError if an option is invalid. */
export const AllocationCalls = OperationCalls as unknown as new (options: ClientOptions) => AllocationCalls

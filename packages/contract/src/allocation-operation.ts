import * as z from 'zod'
import { reserveProblem } from './allocation.ts'
import {
  deploymentProblem,
  type ErrorCode,
  errors,
  isRecordsPath,
  problem,
  toErrorStatus,
} from './allocation-problem.ts'
import { idempotencyKey, poolDomain } from './fields.ts'
import {
  type ErrorForm,
  type ErrorUse,
  type Operation,
  type OperationSpec,
  type Operations,
  toErrorResponses,
} from './operation.ts'

/** What is written down of an operation of the allocation API. */
export interface AllocationOperationSpec extends OperationSpec<ErrorCode> {
  /**
   * The listener that has the operation, if not both do. `list`: with `PDM_OPERATOR_ONLY_LIST`, only the operator listener
   * has it.
   */
  readonly listener?: 'operator' | 'list'
  /** True: the operation takes an Idempotency-Key. */
  readonly key?: true
  /** With `dryRun=true`, the operation changes nothing, and responds 200 with this plan. */
  readonly plan?: z.ZodType
  /** The operation in the metrics of outcomes; absent: its outcomes are not counted. */
  readonly counted?: string
}

export interface AllocationOperation extends AllocationOperationSpec, Pick<Operation, 'id' | 'responses'> {}

export const pool = z.object({ domain: poolDomain })

export const databaseErrors = ['database-unavailable', 'database-read-only'] as const
/** Of a request about a name or a pool. */
export const poolErrors = ['invalid-format', 'unsupported-pool'] as const
/** Of a list that is read in pages. */
export const pageErrors = ['invalid-limit', 'invalid-cursor', 'too-many-readers', 'database-unavailable'] as const
/** Of a request that waits for a DNS provider. */
export const zoneErrors = [...poolErrors, 'dns-unavailable', ...databaseErrors] as const

const idempotencyHeader = z.object({
  'Idempotency-Key': idempotencyKey.optional().meta({
    description:
      'Makes retries safe: the same key with the same request returns the first result. A secret of the client: use at least 128 random bits.',
  }),
})

const errorForm = {
  errors,
  problem,
  bodies: { 'cooling-off': reserveProblem, 'invalid-deployment': deploymentProblem },
  headers: {},
} satisfies ErrorForm<ErrorCode>

const LISTENER_TEXTS = {
  operator: 'Only the operator listener has this path.',
  list: 'With PDM_OPERATOR_ONLY_LIST, only the operator listener has this path.',
} as const

const OPERATOR_ERRORS = [
  'unauthorized',
  ['too-many-attempts', 'Too many wrong credentials from this address, on the operator listener.'],
] as const
const TENANT_ERRORS = [
  [
    'unauthorized',
    'A records token is required. It is missing, unknown, deleted or expired, or its name has been released.',
  ],
] as const

/** The errors that follow from what an operation takes and where it is. */
const impliedErrors = ({
  method,
  path,
  body,
  key,
  listener,
  ignoresUnknownQuery,
}: AllocationOperationSpec): readonly ErrorUse<ErrorCode>[] => [
  ...(isRecordsPath(path) ? TENANT_ERRORS : OPERATOR_ERRORS),
  'forbidden',
  'internal-error',
  ...(method === 'get' || listener === 'operator' ? [] : (['rate-limited'] as const)),
  ...(body && body.mediaType === undefined ? (['invalid-json'] as const) : []),
  ...(body && body.mediaType === undefined
    ? [
        isRecordsPath(path)
          ? (['body-too-large', 'The body must not be larger than 1 MiB.'] as const)
          : ('body-too-large' as const),
      ]
    : []),
  ...(ignoresUnknownQuery ? [] : (['unknown-parameter'] as const)),
  ...(key ? (['invalid-idempotency-key'] as const) : []),
  ...(listener ? ([['not-found', LISTENER_TEXTS[listener]]] as const) : []),
]

/** Adds the response to a dry run. */
const addPlan = (id: string, { results, plan }: AllocationOperationSpec): AllocationOperationSpec['results'] => {
  if (plan === undefined) return results
  const { schema, description, ...rest } = results[200] ?? { description: '' }
  const either = schema && z.union([schema, plan]).meta({ id: `${id[0]?.toUpperCase()}${id.slice(1)}Result` })
  const texts = [...(schema ? [description] : []), 'With `dryRun=true`: what would change.']
  return { ...results, 200: { ...rest, description: texts.join(' '), schema: either ?? plan } }
}

const complete = (id: string, spec: AllocationOperationSpec): AllocationOperation => {
  const results = addPlan(id, spec)
  const errorResponses = toErrorResponses(
    [...(spec.errors ?? []), ...impliedErrors(spec)],
    { ...errorForm, toStatus: code => toErrorStatus(code, spec.path) },
    spec.errorResponses,
  )
  return {
    ...spec,
    id,
    ...(spec.key ? { headers: idempotencyHeader.extend(spec.headers?.shape ?? {}) } : {}),
    results,
    responses: { ...results, ...errorResponses },
  }
}

export const defineOperations = <const Specs extends Readonly<Record<string, AllocationOperationSpec>>>(
  specs: Specs,
): Operations<Specs> =>
  Object.fromEntries(
    Object.entries(specs).map(([id, spec]) => [id, complete(id, spec)]),
  ) as unknown as Operations<Specs>

import { redacted } from '@pool/contract'
import { isJsonObject, type JsonObject } from '../../../lib/text.ts'
import { createValueMask, type Mask, maskValue } from './output.ts'

/**
 * The parts of Terraform's plan representation that describe changes. Variables, configuration and the prior state are
 * left out: they hold the same values again, without marks for all that is sensitive.
 * https://developer.hashicorp.com/terraform/internals/json-format#plan-representation
 */
const PLAN_PARTS = ['format_version', 'terraform_version', 'timestamp', 'applyable', 'complete', 'errored']
const RESOURCE_PARTS = [
  ...['address', 'previous_address', 'module_address', 'mode', 'type', 'name', 'index', 'deposed', 'provider_name'],
  'action_reason',
]
const CHANGE_PARTS = ['actions', 'after_unknown', 'before_sensitive', 'after_sensitive', 'replace_paths', 'importing']

const pick = (object: JsonObject, names: readonly string[]): JsonObject =>
  Object.fromEntries(names.flatMap(name => (name in object ? [[name, object[name]]] : [])))

/** Replaces what `marks`, a value of the same shape with `true` at sensitive places, marks. */
const redactMarked = (value: unknown, marks: unknown): unknown => {
  if (marks === true) return value === null || value === undefined ? value : redacted
  if (Array.isArray(value) && Array.isArray(marks)) return value.map((item, index) => redactMarked(item, marks[index]))
  if (!isJsonObject(value) || !isJsonObject(marks)) return value
  return Object.fromEntries(Object.entries(value).map(([name, item]) => [name, redactMarked(item, marks[name])]))
}

const toList = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : [])

/** The texts at the places that `marks` marks. */
const findMarked = (value: unknown, marks: unknown): readonly string[] => {
  if (marks === true) return findTexts(value)
  if (Array.isArray(value) && Array.isArray(marks)) {
    return value.flatMap((item, index) => findMarked(item, marks[index]))
  }
  if (!isJsonObject(value) || !isJsonObject(marks)) return []
  return Object.entries(value).flatMap(([name, item]) => findMarked(item, marks[name]))
}

/** Every string in a JSON value. */
export const findTexts = (value: unknown): readonly string[] => {
  if (typeof value === 'string') return [value]
  return typeof value === 'object' && value !== null ? Object.values(value).flatMap(findTexts) : []
}

const toPublicChange = (value: unknown): JsonObject => {
  const change = isJsonObject(value) ? value : {}
  return {
    ...pick(change, CHANGE_PARTS),
    before: redactMarked(change.before, change.before_sensitive),
    after: redactMarked(change.after, change.after_sensitive),
  }
}

const toPublicResource = (value: unknown): JsonObject => {
  const resource = isJsonObject(value) ? value : {}
  return { ...pick(resource, RESOURCE_PARTS), change: toPublicChange(resource.change) }
}

const findSensitiveTexts = (plan: unknown): readonly string[] => {
  const whole = isJsonObject(plan) ? plan : {}
  const resources = [...toList(whole.resource_changes), ...toList(whole.resource_drift)].filter(isJsonObject)
  const outputs = isJsonObject(whole.output_changes) ? Object.values(whole.output_changes) : []
  return [...resources.map(({ change }) => change), ...outputs]
    .filter(isJsonObject)
    .flatMap(change => [
      ...findMarked(change.before, change.before_sensitive),
      ...findMarked(change.after, change.after_sensitive),
    ])
}

export const createPlanMask = (plan: unknown): Mask => createValueMask(findSensitiveTexts(plan))

/** The changes of a plan, without sensitive values and with the secrets of `mask` masked. */
export const toPublicPlan = (plan: unknown, mask: Mask): unknown => {
  const whole = isJsonObject(plan) ? plan : {}
  const outputs = Object.entries(isJsonObject(whole.output_changes) ? whole.output_changes : {})
  return maskValue(
    {
      ...pick(whole, PLAN_PARTS),
      resource_changes: toList(whole.resource_changes).map(toPublicResource),
      resource_drift: toList(whole.resource_drift).map(toPublicResource),
      output_changes: Object.fromEntries(outputs.map(([name, change]) => [name, toPublicChange(change)])),
    },
    mask,
  )
}

const isChange = (change: unknown): boolean => {
  const { actions, importing } = Object(change)
  return toList(actions).some(action => action !== 'no-op') || Boolean(importing)
}

/**
 * The changes of a public plan, which identify it. They show no secret: what is masked counts only by its place. Drift does
 * not count, as it is no change of the plan.
 */
export const findChanges = (publicPlan: unknown): readonly unknown[] => {
  const { resource_changes, output_changes } = Object(publicPlan)
  const resources = toList(resource_changes).filter(
    resource => isChange(Object(resource).change) || 'previous_address' in Object(resource),
  )
  return [resources, Object.entries(output_changes ?? {}).filter(([, change]) => isChange(change))]
}

interface PlannedBucket {
  readonly address: string
  readonly type: string
  /** The source of its provider, such as registry.terraform.io/aminueza/minio. */
  readonly provider: string
}

/** The bucket that a plan would create; null if it would create none. */
export const findPlannedBucket = (
  plan: unknown,
  isBucket: (type: string, attributes: JsonObject) => boolean,
): PlannedBucket | null => {
  const changes = toList(isJsonObject(plan) ? plan.resource_changes : null).filter(isJsonObject)
  const found = changes.find(({ type, change }) => {
    const { actions, after } = isJsonObject(change) ? change : {}
    const isCreated = Array.isArray(actions) && actions.length === 1 && actions[0] === 'create'
    return isCreated && isBucket(String(type), isJsonObject(after) ? after : {})
  })
  return found
    ? { address: String(found.address), type: String(found.type), provider: String(found.provider_name) }
    : null
}

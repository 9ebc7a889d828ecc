import { randomUUID } from 'node:crypto'
import { type FileHandle, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { isJsonObject, type JsonObject, parseJson } from '../../lib/text.ts'
import type { Creation, KnownState } from '../domain/types.ts'
import type { ProvisioningRequest, StateRequest } from '../provisioner.ts'
import { Creations, findUnsaved, type SavedResource } from './domain/creations.ts'
import { findTexts } from './domain/plan.ts'
import { CommandFailedError, type TerraformSession } from './session.ts'

/** A managed resource instance of a state. */
interface StateResource extends SavedResource {
  /** Without the keys of instances, as in `dependencies`. */
  readonly configAddress: string
  readonly type: string
  readonly attributes: JsonObject
  /** Its creation failed after it existed, so a plan replaces it. */
  readonly isTainted: boolean
  /** `configAddress` of the resources that its configuration refers to. */
  readonly dependencies: readonly string[]
}

export interface State {
  /** Null: there is no state. */
  readonly version: KnownState | null
  readonly resources: readonly StateResource[]
  /** Addresses of the data sources, whose attributes can be secrets. */
  readonly data: readonly string[]
}

/** The text is not a state of a known version. It is not quoted, as a state has secrets. */
export class StateFormatError extends Error {
  override readonly name = 'StateFormatError'
}

const STATE_VERSION = 4

const toObjects = (value: unknown): readonly JsonObject[] => (Array.isArray(value) ? value.filter(isJsonObject) : [])
const toTexts = (value: unknown): readonly string[] =>
  Array.isArray(value) ? value.filter(item => typeof item === 'string') : []

/** https://developer.hashicorp.com/terraform/cli/state/resource-addressing */
const toKeySuffix = (key: unknown): string => {
  if (typeof key === 'number') return `[${key}]`
  return typeof key === 'string' ? `[${JSON.stringify(key).replace(/[$%](?=\{)/g, '$&$&')}]` : ''
}

const stripKeys = (address: string): string => address.replace(/\[(?:\d+|"(?:[^"\\]|\\.)*")\]/g, '')

/** What is at a path of `sensitive_attributes`: its steps are names of attributes, and keys or indexes. */
const follow = (attributes: unknown, path: unknown): unknown =>
  toObjects(path).reduce<unknown>((found, { value }) => {
    const key = isJsonObject(value) ? value.value : value
    return typeof found === 'object' && found !== null ? Reflect.get(found, String(key)) : undefined
  }, attributes)

/** The texts that the module or a provider marks as sensitive in a state, of whatever version. */
export const findSensitiveTexts = (text: string): readonly string[] => {
  const state = parseJson(text)
  const { resources, outputs }: JsonObject = isJsonObject(state) ? state : {}
  const instances = toObjects(resources).flatMap(resource => toObjects(resource.instances))
  const values = instances.flatMap(({ attributes, sensitive_attributes: paths }) =>
    Array.isArray(paths) ? paths.map(path => follow(attributes, path)) : [],
  )
  const shown = isJsonObject(outputs) ? toObjects(Object.values(outputs)) : []
  return [...values, ...shown.filter(output => output.sensitive === true)].flatMap(findTexts)
}

/**
 * Parses a state file. Data sources are left out. Without a state, Terraform prints nothing or, with some backends, a state
 * without a lineage.
 */
export const parseState = (text: string): State => {
  if (text.trim() === '') return { version: null, resources: [], data: [] }
  const state = parseJson(text)
  if (!isJsonObject(state) || typeof state.version !== 'number') {
    const advice = 'check PDM_TERRAFORM_BINARY, or restore a version of the state that Terraform has written.'
    throw new StateFormatError(`What Terraform printed is no state: ${advice}`)
  }
  if (state.version !== STATE_VERSION) {
    throw new StateFormatError(`The state is not of version ${STATE_VERSION}: use another release of Terraform.`)
  }
  const { lineage, serial } = state
  if (typeof lineage !== 'string' || typeof serial !== 'number') {
    throw new StateFormatError('The state has no lineage or no serial: restore a version that Terraform has written.')
  }
  const toBase = ({ module, mode, type, name }: JsonObject): string =>
    [...(typeof module === 'string' ? [module] : []), ...(mode === 'data' ? ['data'] : []), type, name].join('.')
  const data = toObjects(state.resources).filter(({ mode }) => mode === 'data')
  const resources = toObjects(state.resources)
    .filter(({ mode }) => mode === 'managed')
    .flatMap(resource => {
      const { type } = resource
      const base = toBase(resource)
      return toObjects(resource.instances).map(instance => ({
        address: base + toKeySuffix(instance.index_key),
        configAddress: stripKeys(base),
        type: String(type),
        attributes: isJsonObject(instance.attributes) ? instance.attributes : {},
        isTainted: instance.status === 'tainted',
        isDeposed: instance.deposed !== undefined,
        dependencies: toTexts(instance.dependencies),
      }))
    })
  return { version: lineage === '' ? null : { lineage, serial }, resources, data: data.map(toBase) }
}

/** The attribute that names the bucket differs between providers. */
const NAME_ATTRIBUTES = ['bucket', 'name', 'label', 'id']

/** A bucket is found by its type and name, because the address is the choice of the module. */
export const isBucketResource = (type: string, attributes: JsonObject, bucket: string | null): boolean =>
  bucket !== null && /_bucket(?:_v\d+)?$/.test(type) && NAME_ATTRIBUTES.some(name => attributes[name] === bucket)

export interface StateContents {
  /** Whether a resource is the bucket of the deployment. */
  readonly hasKeptBucket: boolean
  /** Addresses of the bucket if it is tainted. A replacement would delete it. */
  readonly taintedBuckets: readonly string[]
  /** Addresses of all resources but the bucket, without duplicates. */
  readonly others: readonly string[]
  /** Those of `others` that cannot be destroyed without the bucket, because it depends on them. */
  readonly requiredByBucket: readonly string[]
}

/** All that these depend on, directly or not. */
const findDependencies = (
  resources: readonly StateResource[],
  start: readonly StateResource[],
): ReadonlySet<string> => {
  const found = new Set(start.flatMap(({ dependencies }) => dependencies))
  // A set visits what is added during the iteration.
  for (const address of found) {
    for (const { configAddress, dependencies } of resources) {
      if (configAddress === address) for (const dependency of dependencies) found.add(dependency)
    }
  }
  return found
}

export const sortState = (resources: readonly StateResource[], bucket: string | null): StateContents => {
  const buckets = resources.filter(({ type, attributes }) => isBucketResource(type, attributes, bucket))
  const kept = new Set(buckets.map(({ address }) => address))
  const others = resources.filter(({ address }) => !kept.has(address))
  const required = findDependencies(resources, buckets)
  const toAddresses = (list: readonly StateResource[]) => [...new Set(list.map(({ address }) => address))]
  return {
    hasKeptBucket: kept.size > 0,
    taintedBuckets: toAddresses(buckets.filter(({ isTainted }) => isTainted)),
    others: toAddresses(others),
    requiredByBucket: toAddresses(others.filter(({ configAddress }) => required.has(configAddress))),
  }
}

const CHECK_PLACE = 'Check PDM_TERRAFORM_BACKEND and PDM_DEPLOYMENTS_DIR, or restore the state, then retry.'

/**
 * Why `found` cannot be the state that earlier runs wrote, as sentences; null if it can. It may be newer: a run that was
 * killed did not report what it wrote. `found` is null if there is no state, `known` if no run has started to write one.
 */
export const findStateMismatch = (found: KnownState | null, known: KnownState | null): string | null => {
  if (known === null) return null
  if (found === null) {
    return `The state of this deployment is missing: earlier runs wrote it, but its backend has none at this place. Nothing was changed. ${CHECK_PLACE}`
  }
  if (found.lineage !== known.lineage) {
    return `The backend has another state than the one that earlier runs of this deployment wrote (Terraform lineage ${found.lineage} instead of ${known.lineage}). Nothing was changed. ${CHECK_PLACE}`
  }
  if (found.serial >= known.serial) return null
  return `The state is older than the one that earlier runs of this deployment wrote (serial ${found.serial}, but ${known.serial} was written). Nothing was changed. Restore its newest version, then retry.`
}

/** A state without resources. With it in its place, the first apply has a state to compare with after a crash. */
const toInitialState = (lineage: string): string =>
  JSON.stringify({ version: 4, serial: 1, lineage, outputs: {}, resources: [] })

const INITIAL_STATE = 'initial.tfstate'

/** That a command ended without an error proves nothing: a backend, or a program in place of Terraform, can drop a write. */
const requireSaved = (isSaved: boolean): void => {
  if (isSaved) return
  throw new CommandFailedError(
    'Terraform reported no error, but its backend does not have the state that it wrote. Check PDM_TERRAFORM_BINARY and PDM_TERRAFORM_BACKEND, then retry.',
  )
}

/** The state as its backend has it, if that can be the one that earlier runs wrote. */
export const readState = async (
  session: TerraformSession,
  { knownState }: Pick<StateRequest, 'knownState'>,
): Promise<State> => {
  const text = await session.capture(['state', 'pull'])
  session.hide(findSensitiveTexts(text))
  const state = parseState(text)
  const mismatch = findStateMismatch(state.version, knownState)
  if (mismatch !== null) throw new CommandFailedError(mismatch)
  return state
}

const withUnfinished = (version: KnownState, unfinished: readonly Creation[]): KnownState =>
  unfinished.length > 0 ? { ...version, unfinished } : version

/** What earlier runs started to create, and the state does not have. */
export const findUnfinished = ({ resources }: State, { knownState }: Pick<StateRequest, 'knownState'>): Creation[] =>
  findUnsaved(knownState?.unfinished ?? [], resources)

/** Reports what the state is, what it may lack, and whether it has the bucket. */
const report = async (
  state: State,
  request: ProvisioningRequest,
  doubtful: readonly Creation[] = [],
): Promise<void> => {
  const unfinished = [...findUnfinished(state, request), ...findUnsaved(doubtful, state.resources)]
  if (state.version) await request.onState?.(withUnfinished(state.version, unfinished))
  // The next report repeats what could not be recorded.
  if (sortState(state.resources, request.bucket).hasKeptBucket) await request.onBucketCreated?.().catch(() => {})
}

/**
 * The state of an apply, reported before anything changes. A missing one is written first: from then on, no state means
 * that the state was lost.
 */
export const establishState = async (session: TerraformSession, request: ProvisioningRequest): Promise<State> => {
  let state = await readState(session, request)
  if (state.version === null) {
    await writeFile(join(session.cwd, INITIAL_STATE), toInitialState(randomUUID()), { mode: 0o600 })
    await session.capture(['state', 'push', '-lock-timeout=60s', INITIAL_STATE])
    state = await readState(session, request)
    // For some backends, Terraform chooses another lineage.
    requireSaved(state.version !== null)
  }
  await report(state, request)
  return state
}

const hasTaintedBucket = (state: State, bucket: string | null): boolean =>
  sortState(state.resources, bucket).taintedBuckets.length > 0

/**
 * Removes the taint of the bucket, which an apply left that failed after it had created the bucket: the next one keeps the
 * bucket and completes it. Returns the state and whether it was changed.
 */
export const untaintBucket = async (
  session: TerraformSession,
  request: ProvisioningRequest,
  state: State,
): Promise<{ state: State; isUntainted: boolean }> => {
  const { taintedBuckets } = sortState(state.resources, request.bucket)
  if (taintedBuckets.length === 0) return { state, isUntainted: false }
  for (const address of taintedBuckets) {
    await session.capture(['untaint', '-no-color', '-lock-timeout=60s', '-backup=-', address])
  }
  const after = await readState(session, request)
  await report(after, request)
  // An apply would replace it.
  requireSaved(!hasTaintedBucket(after, request.bucket))
  return { state: after, isUntainted: true }
}

/** After a destroy that kept the bucket, the state still has what data sources have read for the rest. */
export const forgetData = async (session: TerraformSession, request: ProvisioningRequest): Promise<void> => {
  const { data } = await readState(session, request)
  if (data.length === 0) return
  await session.capture(['state', 'rm', '-lock-timeout=60s', '-backup=forgotten', ...data])
  const after = await readState(session, request)
  await report(after, request)
  requireSaved(after.data.length === 0)
}

/**
 * Runs an apply or a destroy of the state `before`, and reports what it has become, also after a failure. Returns the
 * outputs; null if none could be read.
 */
export const changeState = async (
  session: TerraformSession,
  phase: 'apply' | 'destroy',
  args: readonly string[],
  request: ProvisioningRequest,
  before: State,
  planFile?: FileHandle,
): Promise<Readonly<Record<string, unknown>> | null> => {
  const { bucket, onLock, onBucketCreated } = request
  let text: string | null = null
  const creations = new Creations(before.resources)
  const earlier = findUnfinished(before, request)
  let exitCode: number | null = null
  let recorded = Promise.resolve()
  const record = async (unfinished: readonly Creation[]): Promise<void> => {
    if (before.version) await request.onState?.(withUnfinished(before.version, [...earlier, ...unfinished]))
  }
  /** While the last record is written, further events only change the next one. */
  const recordStarted = () => {
    const count = creations.started.length
    const isLatest = () => count === creations.started.length
    recorded = recorded.then(() => (isLatest() ? record(creations.started) : undefined)).catch(() => {})
  }
  /** `after`: null if it is not known. `isSaved`: false if it is known to lack what the command has done. */
  const reportAfter = async (): Promise<{ readonly after: State | null; readonly isSaved: boolean }> => {
    await recorded
    const after = text === null ? null : parseState(text)
    // A state that someone replaced in the meantime is for the next run to reject.
    const isOurs = after !== null && findStateMismatch(after.version, before.version) === null
    const hasSaved = isOurs && after.version?.serial !== before.version?.serial
    const doubtful = creations.findDoubtful(exitCode, hasSaved)
    if (!isOurs) {
      if (creations.started.length > 0) await record(doubtful)
      return { after: null, isSaved: after === null }
    }
    await report(after, request, doubtful)
    return { after, isSaved: findUnsaved(doubtful, after.resources).length === 0 }
  }
  const execution = session.execute(phase, args, {
    ...(onLock && { onLock }),
    ...(planFile && { file3: planFile }),
    onEnded: async () => {
      text = await session.pullStateAtEnd()
      session.hide(findSensitiveTexts(text ?? ''))
    },
    onCreation: event => {
      creations.add(event)
      if (event.kind === 'started') recordStarted()
      if (event.kind !== 'complete' || !isBucketResource(event.type, { id: event.id }, bucket)) return
      void onBucketCreated?.().catch(() => {})
    },
    onExit: ({ code }) => {
      exitCode = code
    },
  })
  const outputs = await execution.catch(async (error: unknown) => {
    const { after } = await reportAfter()
    if (!(error instanceof CommandFailedError) || after === null || !hasTaintedBucket(after, bucket)) throw error
    throw new CommandFailedError(
      `${error.message} The bucket ${bucket} was created before the failure. Remove the cause, then apply again: the bucket is kept.`,
    )
  })
  requireSaved((await reportAfter()).isSaved)
  return outputs
}

import { createHash } from 'node:crypto'
import type { FileHandle } from 'node:fs/promises'
import { resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Env } from '@pool/runtime/service/env'
import { findCredentials, findEnvSecrets, type TerraformSettings, toTerraformEnv } from '../../config/terraform.ts'
import { isJsonObject, parseJson } from '../../lib/text.ts'
import { ProvisionerFailedError, type ProvisioningFailed, toFailed } from '../domain/provisioner-failure.ts'
import type { DeploymentLogLine, StateLock } from '../domain/types.ts'
import type {
  DestroyResult,
  PlanResult,
  Provisioner,
  ProvisioningRequest,
  ProvisioningResult,
  ProvisioningStopped,
  StateInspection,
  StateRequest,
  UnlockResult,
} from '../provisioner.ts'
import { createMask, type Mask, maskValue, OutputCollector } from './domain/output.ts'
import { createPlanMask, findChanges, findPlannedBucket, toPublicPlan } from './domain/plan.ts'
import { describeExposure, findPluginCaches, findVisiblePaths, probeIsolation } from './isolation.ts'
import {
  explainSystemError,
  isSystemError,
  listModuleDirectories,
  Prerequisites,
  readModuleVersion,
} from './prerequisites.ts'
import { checkProcessGroup } from './process-group.ts'
import { CommandFailedError, PLAN_FILE, StoppedError, TerraformSession } from './session.ts'
import {
  changeState,
  establishState,
  findUnfinished,
  forgetData,
  isBucketResource,
  readState,
  type State,
  type StateContents,
  StateFormatError,
  sortState,
  untaintBucket,
} from './state.ts'
import {
  archiveState,
  type BucketImport,
  createStateDir,
  createTemporaryWorkdir,
  createWorkdir,
  type Directories,
  discardEmptyState,
  listUnsavedStates,
  removeEarlierWorkdirs,
  removeStateBackup,
  removeTemporaryWorkdir,
  removeWorkdir,
  toBackend,
  validateId,
  writeRootModule,
  writeStateModule,
} from './workdir.ts'

export interface TerraformOptions extends TerraformSettings {
  /** The environment of the service, of which Terraform inherits a part. */
  readonly env: Env
  /** Secrets of the service, for the mask. */
  readonly serviceSecrets?: readonly string[]
}

type Log = (line: DeploymentLogLine) => void

const LOCAL_DEPLOYMENT_MODULE = fileURLToPath(new URL('../../../../../infra/local-deployment', import.meta.url))
/** For deployments with object storage: only it needs a provider, which Terraform downloads even if nothing uses it. */
const LOCAL_DEPLOYMENT_WITH_BUCKET = fileURLToPath(
  new URL('../../../../../infra/local-deployment-with-bucket', import.meta.url),
)

const toModuleDir = (moduleDir: string | null, bucket: string | null): string =>
  resolve(moduleDir ?? (bucket === null ? LOCAL_DEPLOYMENT_MODULE : LOCAL_DEPLOYMENT_WITH_BUCKET))
/** For everything that an unlock does, including the wait for a run in this process. */
const UNLOCK_TIMEOUT_MS = 60_000

const INIT = ['init', '-input=false', '-no-color']
/**
 * The lock timeout covers another replica, or a supervisor, that is about to release the state. A backup of the state would
 * keep its secrets after a destroy.
 */
const APPLY = ['apply', '-input=false', '-auto-approve', '-json', '-lock-timeout=60s', '-backup=-']
const DESTROY = ['destroy', ...APPLY.slice(1)]
/** A plan takes no lock, so it cannot leave one. */
const PLAN = ['plan', '-input=false', '-json', '-lock=false', `-out=${PLAN_FILE}`]

/** Milliseconds beyond the timeout of an operation until its temporary directory counts as left behind. */
const TEMPORARY_MARGIN_MS = 60_000

const NO_VALUES = { variables: {}, secrets: {} }

/** An unsaved state is the only record of what exists. */
const toUnsavedStateLine = (file: string): DeploymentLogLine => ({
  phase: 'end',
  level: 'error',
  message: `The state could not be saved and was kept in PDM_DEPLOYMENTS_DIR as ${file}. Run \`terraform state push\` with this file and delete it; until then, the deployment can be neither planned, applied nor destroyed.`,
})

/** The values become names of files and variables, and keys of a backend. */
const validateRequest = ({ id, run, stateKey, variables, secrets }: StateRequest & Values): void => {
  validateId(id)
  if (!/^[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?$/.test(stateKey))
    throw new RangeError('a state key must be a UUID or a domain name')
  if (!Number.isSafeInteger(run) || run < 1) throw new RangeError('a run must be a positive integer')
  const names = [...Object.keys(variables), ...Object.keys(secrets)]
  if (!names.every(name => /^[a-z][a-z0-9_]*$/.test(name))) throw new RangeError('a variable name must be lower case')
  if (new Set(names).size < names.length) throw new RangeError('a variable must be either secret or not')
  const values = [...Object.values(variables), ...Object.values(secrets)]
  if (values.some(value => value.includes('\0')))
    throw new RangeError('the value of a variable must not contain U+0000')
}

type Values = Pick<ProvisioningRequest, 'variables' | 'secrets'>

interface Operation {
  readonly request: StateRequest & Values & Pick<ProvisioningRequest, 'force'>
  /** A run has a working directory of its own number, which its successors clean up. */
  readonly isRun: boolean
  /** Whether only the state is needed: neither the module nor its variables. */
  readonly isStateOnly: boolean
  readonly log: Log
  readonly signal: AbortSignal
}

interface Work {
  readonly session: TerraformSession
  /** For results. */
  readonly mask: Mask
}

/** Null: nothing is left to destroy. */
const toDestroyTargets = ({ hasKeptBucket, others, requiredByBucket }: StateContents): string[] | null => {
  if (others.length === 0) return null
  if (!hasKeptBucket) return []
  const targets = others.filter(address => !requiredByBucket.includes(address))
  return targets.length > 0 ? targets.map(address => `-target=${address}`) : null
}

/** A Terraform that an earlier run left may still be saving what that run started to create. */
const waitForEarlierRun = async (session: TerraformSession, { knownState }: StateRequest): Promise<void> => {
  if (knownState?.unfinished) await session.waitForLock()
}

const parsePlan = (text: string): unknown => {
  const plan = parseJson(text)
  if (isJsonObject(plan) && typeof plan.format_version === 'string') return plan
  throw new CommandFailedError('What Terraform printed is no plan: check PDM_TERRAFORM_BINARY.')
}

/** Plans into a file that ends with `use`: a plan contains secrets. */
const withPlan = async <Result>(
  session: TerraformSession,
  more: readonly string[],
  use: (plan: { readonly text: string; readonly json: unknown }, file: FileHandle) => Promise<Result> | Result,
): Promise<Result> => {
  const file = await session.openPlanFile()
  try {
    await session.capture([...PLAN, ...more], file)
    const text = await session.capture(['show', '-no-color', PLAN_FILE], file)
    const json = parsePlan(await session.capture(['show', '-json', PLAN_FILE], file))
    return await use({ text, json }, file)
  } finally {
    await file.close()
  }
}

/** The plan as users see it. */
const toPlanned = ({ text, json }: { readonly text: string; readonly json: unknown }, mask: Mask) => {
  const maskSensitive = createPlanMask(json)
  const maskAll: Mask = value => maskSensitive(mask(value))
  const publicJson = toPublicPlan(json, maskAll)
  const planHash = createHash('sha256')
    .update(JSON.stringify(findChanges(publicJson)))
    .digest('hex')
  return { kind: 'planned' as const, text: maskAll(text), json: publicJson, planHash }
}

const NO_OUTPUTS =
  'Terraform has applied the module, but printed no outputs that could be read: check that the outputs of the module take less than 256 KiB, and PDM_TERRAFORM_BINARY.'

const NOTHING_TO_DESTROY = { text: 'No changes. Nothing is left to destroy.\n', json: {} }

/** Terraform would plan to replace a tainted bucket, which an apply does not do. */
const rejectTaintedBucket = ({ resources }: State, bucket: string | null): void => {
  if (sortState(resources, bucket).taintedBuckets.length === 0) return
  throw new CommandFailedError(
    `There is no plan, because the run that created the bucket ${bucket} failed. Apply again: that keeps the bucket and completes it.`,
  )
}

class PlanChangedError extends CommandFailedError {
  constructor() {
    super(
      'plan-changed: The changes are not those of the plan with this planHash, so this run changed nothing. Plan again, look at the changes, and repeat the call with the new planHash.',
    )
  }
}

const requirePlan = ({ planHash }: ProvisioningRequest, planned: { readonly planHash: string }): void => {
  if (planHash !== undefined && planHash !== planned.planHash) throw new PlanChangedError()
}

/** Runs an apply or a destroy, or does exactly what the plan that the caller has seen shows. */
const changeAsPlanned = async (
  { session, mask }: Work,
  phase: 'apply' | 'destroy',
  targets: readonly string[],
  request: ProvisioningRequest,
  state: State,
) => {
  const isDestroy = phase === 'destroy'
  if (request.planHash === undefined) {
    return changeState(session, phase, [...(isDestroy ? DESTROY : APPLY), ...targets], request, state)
  }
  return withPlan(session, isDestroy ? ['-destroy', ...targets] : [], (plan, file) => {
    requirePlan(request, toPlanned(plan, mask))
    return changeState(session, phase, [...APPLY, PLAN_FILE], request, state, file)
  })
}

export const createPrerequisites = ({
  binary,
  dataDir,
  moduleDir,
  env,
}: Pick<TerraformOptions, 'binary' | 'dataDir' | 'moduleDir' | 'env'>): Prerequisites =>
  new Prerequisites({
    binary,
    dataDir: resolve(dataDir),
    moduleDir: toModuleDir(moduleDir, null),
    bucketModuleDir: toModuleDir(moduleDir, 'any'),
    env: toTerraformEnv({ PATH: env.PATH, HOME: env.HOME }, []),
  })

/** Why a module can read more than its run, as a sentence; null if Terraform is isolated. Rather slow: it tries. */
export const findExposure = async ({
  isolation,
  env,
}: Pick<TerraformOptions, 'isolation' | 'env'>): Promise<string | null> => {
  const reason = isolation === 'off' ? 'PDM_TERRAFORM_ISOLATION is off' : await probeIsolation({ PATH: env.PATH ?? '' })
  return reason === null ? null : describeExposure(reason)
}

/** One lock per key, granted in the order of the requests. */
interface KeyedMutex {
  /** Waits for the lock and returns the function that releases it; null if the signal aborts first. */
  acquire(key: string, signal: AbortSignal): Promise<(() => void) | null>
}

export const createKeyedMutex = (): KeyedMutex => {
  /** Per key, the promise that resolves when the last request in the queue has released the lock. */
  const tails = new Map<string, Promise<void>>()
  return {
    acquire: async (key, signal) => {
      const previous = tails.get(key) ?? Promise.resolve()
      const released = Promise.withResolvers<void>()
      // Includes `previous`, so a request that aborts does not let the next one overtake the current holder.
      const tail = previous.then(() => released.promise)
      tails.set(key, tail)
      void tail.then(() => {
        if (tails.get(key) === tail) tails.delete(key)
      })
      const aborted = Promise.withResolvers<true>()
      const onAbort = () => aborted.resolve(true)
      signal.addEventListener('abort', onAbort, { once: true })
      if (signal.aborted) onAbort()
      const isAborted = await Promise.race([previous.then(() => false), aborted.promise])
      signal.removeEventListener('abort', onAbort)
      if (!isAborted) return released.resolve
      released.resolve()
      return null
    },
  }
}

/**
 * Infrastructure by `terraform` or `tofu`. Each operation runs `init` and its commands in a new working directory, with a
 * root module that calls the deployment module. Operations on the same state key queue within their own timeouts. Other
 * processes are excluded by Terraform's state lock, if the backend has one.
 */
class TerraformProvisioner implements Provisioner {
  readonly #options: TerraformOptions
  readonly #dataDir: string
  readonly #env: Readonly<Record<string, string>>
  /** What the log does not show of the environment: every passed value that may be a credential. */
  readonly #envSecrets: readonly string[]
  /** What results do not show: what is known to be a credential, as another value can be part of a result. */
  readonly #credentials: readonly string[]
  #exposure: Promise<string | null> | undefined
  readonly #prerequisites: Prerequisites
  readonly #mutex = createKeyedMutex()

  constructor(options: TerraformOptions) {
    this.#options = options
    this.#dataDir = resolve(options.dataDir)
    this.#env = toTerraformEnv(options.env, options.passthrough)
    const { env, passthrough, serviceSecrets = [] } = options
    this.#envSecrets = [...findEnvSecrets(env, passthrough), ...serviceSecrets]
    this.#credentials = findCredentials(env, passthrough, serviceSecrets)
    this.#prerequisites = createPrerequisites(options)
  }

  async preflight(signal?: AbortSignal): Promise<string | null> {
    const missing = await this.#prerequisites.check(signal)
    if (missing !== null || this.#options.isolation !== 'required') return missing
    return this.describeExposure()
  }

  /** A failure is not kept: it can be temporary. */
  async describeExposure(): Promise<string | null> {
    this.#exposure ??= findExposure(this.#options)
    const exposure = await this.#exposure
    if (exposure !== null) this.#exposure = undefined
    return exposure
  }

  makesBucket(): Promise<boolean> {
    return this.#prerequisites.makesBucket()
  }

  describeLimits(): Promise<string | null> {
    return this.#prerequisites.describeLimits()
  }

  moduleVersion(bucket: string | null): Promise<string> {
    return this.#onMachine(() => readModuleVersion(toModuleDir(this.#options.moduleDir, bucket)))
  }

  apply(request: ProvisioningRequest, log: Log, signal: AbortSignal): Promise<ProvisioningResult> {
    const operation = { request, isRun: true, isStateOnly: false, log, signal }
    return this.#operate(operation, async work => {
      const { session, mask } = work
      await this.#rejectUnsavedState(request)
      await this.#init(session)
      await waitForEarlierRun(session, request)
      const established = await establishState(session, request)
      if (request.planHash !== undefined) rejectTaintedBucket(established, request.bucket)
      const { state, isUntainted } = await untaintBucket(session, request, established)
      if (isUntainted) {
        const message = `Keeping the bucket ${request.bucket}, although the run that created it failed.`
        log({ phase: 'apply', level: 'info', message })
      }
      const bucket = await this.#importBucket(session, request, state)
      if (bucket?.exists) {
        log({ phase: 'apply', level: 'info', message: `Importing the existing bucket ${request.bucket}.` })
      }
      // Another creation could make a second machine.
      if (findUnfinished(state, request).some(({ address }) => address !== bucket?.address)) {
        throw new CommandFailedError(
          'An earlier run was ended before it had saved all that it created, so nothing was changed.',
        )
      }
      const outputs = await changeAsPlanned(work, 'apply', [], request, state)
      if (outputs === null) throw new CommandFailedError(NO_OUTPUTS)
      return { kind: 'applied', outputs: Object(maskValue(outputs, mask)) }
    })
  }

  destroy(request: ProvisioningRequest, log: Log, signal: AbortSignal): Promise<DestroyResult> {
    const operation = { request, isRun: true, isStateOnly: false, log, signal }
    return this.#operate(operation, async work => {
      const { session, mask } = work
      await this.#rejectUnsavedState(request)
      await this.#init(session)
      await waitForEarlierRun(session, request)
      const state = await readState(session, request)
      const contents = sortState(state.resources, request.bucket)
      const targets = toDestroyTargets(contents)
      if (targets) await changeAsPlanned(work, 'destroy', targets, request, state)
      else requirePlan(request, toPlanned(NOTHING_TO_DESTROY, mask))
      if (contents.hasKeptBucket) await forgetData(session, request)
      if (contents.requiredByBucket.length === 0) return { kind: 'destroyed' }
      const addresses = contents.requiredByBucket.join(', ')
      throw new CommandFailedError(`The bucket depends on resources that therefore remain: ${addresses}.`)
    })
  }

  plan(request: ProvisioningRequest & { readonly destroy: boolean }, signal: AbortSignal): Promise<PlanResult> {
    const operation = { request, isRun: false, isStateOnly: false, log: () => {}, signal }
    return this.#operate(operation, async ({ session, mask }) => {
      await this.#rejectUnsavedState(request)
      await this.#init(session)
      const state = await readState(session, request)
      if (!request.destroy) rejectTaintedBucket(state, request.bucket)
      const targets = request.destroy ? toDestroyTargets(sortState(state.resources, request.bucket)) : []
      if (targets === null) return toPlanned(NOTHING_TO_DESTROY, mask)
      if (!request.destroy) await this.#importBucket(session, request, state)
      return withPlan(session, request.destroy ? ['-destroy', ...targets] : [], plan => toPlanned(plan, mask))
    })
  }

  async inspect(request: StateRequest, signal: AbortSignal): Promise<StateInspection> {
    const operation = { request: { ...request, ...NO_VALUES }, isRun: false, isStateOnly: true, log: () => {}, signal }
    const result = await this.#operate(operation, async ({ session }): Promise<StateInspection> => {
      await this.#rejectUnsavedState(request)
      await this.#init(session)
      // A state does not show what a Terraform that still runs is creating.
      if ((await session.probeLock()).kind === 'locked') {
        throw new CommandFailedError('The state is locked: another run may still change it.')
      }
      const state = await readState(session, request)
      const { hasKeptBucket, others } = sortState(state.resources, request.bucket)
      const unfinished = findUnfinished(state, request)
      return {
        ...{ kind: 'inspected', isEmpty: others.length === 0, hasKeptBucket, resources: others },
        ...(unfinished.length > 0 && { unfinished }),
      }
    })
    return result.kind === 'stopped' ? { kind: 'failed', reason: 'The state was not read in time.' } : result
  }

  archive({ stateKey }: StateRequest): Promise<string> {
    return this.#onMachine(() => archiveState(this.#dataDir, stateKey, this.#options.backend))
  }

  discard({ stateKey }: StateRequest): Promise<void> {
    return this.#onMachine(() => discardEmptyState(this.#dataDir, stateKey, this.#options.backend))
  }

  async findLockHolder(lock: StateLock): Promise<'running' | 'ended' | 'unknown'> {
    return checkProcessGroup(lock)
  }

  async unlock(request: StateRequest, lockId: string): Promise<UnlockResult> {
    const signal = AbortSignal.timeout(UNLOCK_TIMEOUT_MS)
    const operation = { request: { ...request, ...NO_VALUES }, isRun: false, isStateOnly: true, log: () => {}, signal }
    const result = await this.#operate(operation, async ({ session }): Promise<UnlockResult> => {
      await this.#init(session)
      const found = await session.lift(lockId)
      if (found.kind === 'unknown') {
        throw new CommandFailedError('Whether the state is locked, and by whom, could not be read from its backend.')
      }
      if (found.kind === 'not-locked') return found
      return found.id === lockId ? { kind: 'unlocked' } : { kind: 'other-lock', id: found.id }
    })
    if (result.kind !== 'stopped') return result
    return { kind: 'failed', reason: 'The state is in use in this process, or its backend did not respond in time.' }
  }

  async cleanUp(id: string, run: number, log: Log): Promise<void> {
    const states = await this.#onMachine(() => removeEarlierWorkdirs(this.#dataDir, id, run))
    for (const state of states) log(toUnsavedStateLine(state))
  }

  /** Terraform does not lock the cache of its providers: two that fill it at a time both fail. */
  async #init(session: TerraformSession): Promise<void> {
    const [cache] = findPluginCaches(this.#env)
    const release = cache === undefined ? () => {} : await this.#mutex.acquire(`providers ${cache}`, session.ended)
    if (!release) throw new StoppedError()
    await session.execute('init', INIT).finally(release)
  }

  /** Until its backend has it, the state says that what exists does not. */
  async #rejectUnsavedState({ id }: StateRequest): Promise<void> {
    const [file] = await listUnsavedStates(this.#dataDir, id)
    if (file) throw new CommandFailedError(toUnsavedStateLine(`state/${file}`).message)
  }

  /**
   * Adds an import of the bucket to the root module if the bucket exists and the state has lost it. Only a plan shows which
   * address the module gives it, and only a plan with the import shows whether it exists. Null: the state has it, or it
   * cannot come from an earlier run.
   */
  async #importBucket(session: TerraformSession, request: ProvisioningRequest, state: State) {
    const { bucket } = request
    const mayImport = request.mayImportBucket || findUnfinished(state, request).length > 0
    if (!mayImport || bucket === null || sortState(state.resources, bucket).hasKeptBucket) return null
    const json = await withPlan(session, [], plan => plan.json)
    const planned = findPlannedBucket(json, (type, attributes) => isBucketResource(type, attributes, bucket))
    if (planned === null) return null
    await this.#writeRootModule(session.cwd, request, { ...planned, id: bucket })
    try {
      await withPlan(session, [], () => {})
      return { address: planned.address, exists: true }
    } catch (error) {
      if (!(error instanceof CommandFailedError)) throw error
      await this.#writeRootModule(session.cwd, request)
      return { address: planned.address, exists: false }
    }
  }

  /** Explains what fails on this machine, such as a full disk or a folder that is gone. */
  async #onMachine<Result>(work: () => Promise<Result>): Promise<Result> {
    try {
      return await work()
    } catch (error) {
      if (!isSystemError(error)) throw error
      throw new ProvisionerFailedError((await this.#prerequisites.check()) ?? explainSystemError(error))
    }
  }

  /** Maps the ends of an operation that are no defects to results. */
  async #operate<Result>(
    operation: Operation,
    work: (context: Work) => Promise<Result>,
  ): Promise<Result | ProvisioningFailed | ProvisioningStopped> {
    const { request, signal } = operation
    validateRequest(request)
    const { timeoutMs } = this.#options
    const ended = AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)])
    try {
      return await this.#onMachine(() => this.#operateExclusively(operation, ended, work))
    } catch (error) {
      if (error instanceof CommandFailedError || error instanceof StateFormatError) {
        const isPlanChanged = error instanceof PlanChangedError
        return { kind: 'failed', reason: error.message, ...(isPlanChanged && { isPlanChanged }) }
      }
      if (!(error instanceof StoppedError)) return toFailed(error)
      if (signal.aborted) return { kind: 'stopped' }
      return { kind: 'failed', reason: `Timed out after ${timeoutMs / 1_000} s (PDM_DEPLOYMENT_TIMEOUT).` }
    }
  }

  async #operateExclusively<Result>(
    { request, isRun, isStateOnly, log }: Operation,
    ended: AbortSignal,
    work: (context: Work) => Promise<Result>,
  ): Promise<Result> {
    const { id, run, stateKey, variables, secrets } = request
    const { stopTimeoutMs, timeoutMs } = this.#options
    const dataDir = this.#dataDir
    const release = await this.#mutex.acquire(stateKey, ended)
    if (!release) throw new StoppedError()
    let cwd: string | undefined
    try {
      const binary = await this.#prerequisites.findBinary()
      if (binary === null)
        throw new CommandFailedError((await this.preflight()) ?? 'The Terraform binary has disappeared.')
      const backend = toBackend(dataDir, stateKey, this.#options.backend)
      const stateDir = await createStateDir(backend, stateKey)
      cwd = isRun
        ? await createWorkdir(dataDir, id, run)
        : await createTemporaryWorkdir(dataDir, timeoutMs + TEMPORARY_MARGIN_MS)
      const directories = this.#toDirectories(request)
      if (isStateOnly) await writeStateModule(cwd, directories, { stateKey, backend: this.#options.backend })
      else await this.#writeRootModule(cwd, request)
      const keys = Object.values(secrets)
      const session = new TerraformSession({
        binary,
        cwd,
        env: this.#env,
        values: { ...variables, ...secrets },
        backend,
        stateKey,
        collector: new OutputCollector(createMask([...keys, ...this.#envSecrets]), log),
        ended,
        force: request.force,
        stopTimeoutMs,
        visible:
          (await this.describeExposure()) === null
            ? await this.#findVisiblePaths(binary, stateDir, directories.moduleDir)
            : null,
      })
      return await work({ session, mask: createMask([...keys, ...this.#credentials]) })
    } finally {
      // Of a release of this service that let Terraform keep one.
      await removeStateBackup(dataDir, stateKey, this.#options.backend).catch(() => {})
      release()
      // A leftover directory must not turn a successful apply into a failure.
      const removed = isRun ? removeWorkdir(dataDir, id, run) : removeTemporaryWorkdir(cwd)
      const state = await removed.catch(() => {
        log({ phase: 'end', level: 'warn', message: 'The working directory could not be removed.' })
        return null
      })
      if (state) log(toUnsavedStateLine(state))
    }
  }

  #toDirectories({ bucket }: StateRequest): Directories {
    return { dataDir: this.#dataDir, moduleDir: toModuleDir(this.#options.moduleDir, bucket) }
  }

  async #findVisiblePaths(binary: string, stateDir: string | null, moduleDir: string) {
    const modules = [moduleDir, ...(await listModuleDirectories(moduleDir))]
    const sources = { binary, modules, settings: this.#options, stateDir }
    return (env: Readonly<Record<string, string>>) => findVisiblePaths({ ...sources, env })
  }

  #writeRootModule(cwd: string, request: StateRequest & Values, bucketImport?: BucketImport): Promise<void> {
    const { stateKey, variables, secrets } = request
    return writeRootModule(cwd, this.#toDirectories(request), {
      stateKey,
      backend: this.#options.backend,
      variables: Object.keys(variables),
      secrets: Object.keys(secrets),
      ...(bucketImport && { bucketImport }),
    })
  }
}

export const createTerraform = (options: TerraformOptions): Provisioner => new TerraformProvisioner(options)

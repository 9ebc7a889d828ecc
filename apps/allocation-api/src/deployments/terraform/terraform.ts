import { execFile } from 'node:child_process'
import { access, constants, mkdir, readdir, stat } from 'node:fs/promises'
import { delimiter, isAbsolute, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import type { Env } from '../../config/env.ts'
import { findEnvSecrets, type TerraformSettings, toTerraformEnv } from '../../config/terraform.ts'
import { createKeyedMutex } from '../../lib/keyed-mutex.ts'
import type { DeploymentLogLine } from '../domain/types.ts'
import type {
  DestroyResult,
  PlanResult,
  Provisioner,
  ProvisioningRequest,
  ProvisioningResult,
  StateInspection,
  UnlockResult,
} from '../provisioner.ts'
import { OutputCollector } from './domain/output.ts'
import { createMask, maskValue } from './domain/secret-masker.ts'
import { runInProcessGroup } from './process-group.ts'
import { createWorkdir, isModuleFile, removeEarlierWorkdirs, removeWorkdir, validateId } from './workdir.ts'

export interface TerraformOptions extends TerraformSettings {
  /** The environment of the service, of which Terraform inherits a part. */
  readonly env: Env
  /** From SIGINT, at which Terraform saves its state, to SIGKILL. Default: 10 s. */
  readonly graceMs?: number
}

const LOCAL_DEPLOYMENT_MODULE = fileURLToPath(new URL('../../../../../infra/local-deployment', import.meta.url))
const DEFAULT_GRACE_MS = 10_000
const INSTALL =
  'install Terraform (https://developer.hashicorp.com/terraform/install) or OpenTofu (https://opentofu.org/docs/intro/install/)'
const VERSION_TIMEOUT_MS = 10_000
/** Sufficient for the generated configuration, and the first version of OpenTofu. */
const MIN_VERSION = '1.6.0'

const INIT = ['init', '-input=false', '-no-color']
/** The lock timeout covers another replica, or a supervisor, that is about to release the state. */
const APPLY = ['apply', '-input=false', '-auto-approve', '-json', '-lock-timeout=60s']

/** What an apply needs on this machine. */
interface Prerequisites {
  readonly binary: string | null
  readonly dataDir: string
  readonly moduleDir: string
  /** Environment of the binary. */
  readonly env: Readonly<Record<string, string>>
}

/** Parses the output of `version -json`; null if it is not Terraform's or OpenTofu's. */
export const parseVersion = (output: string): string | null => {
  try {
    const { terraform_version: version } = JSON.parse(output)
    return typeof version === 'string' && /^\d+\.\d+\.\d+/.test(version) ? version : null
  } catch {
    return null
  }
}

/** Compares the three numbers: a pre-release counts as its release. */
export const isTooOld = (version: string): boolean => {
  const toNumbers = (text: string) => text.split(/[.+-]/, 3).map(Number)
  const minimum = toNumbers(MIN_VERSION)
  const difference = toNumbers(version)
    .map((number, index) => number - (minimum[index] ?? 0))
    .find(value => value !== 0)
  return (difference ?? 0) < 0
}

const executeFile = promisify(execFile)

const isExecutable = async (path: string): Promise<boolean> => {
  const isAllowed = await access(path, constants.X_OK).then(
    () => true,
    () => false,
  )
  return isAllowed && (await stat(path)).isFile()
}

/** Resolves a path, or a name on the PATH; null if there is no such executable. */
const findBinary = async ({ binary, env }: Prerequisites): Promise<string | null> => {
  const names = binary === null ? ['terraform', 'tofu'] : [binary]
  const directories = (env.PATH ?? '').split(delimiter).filter(isAbsolute)
  for (const name of names) {
    const paths = name.includes('/') ? [resolve(name)] : directories.map(directory => join(directory, name))
    for (const path of paths) if (await isExecutable(path)) return path
  }
  return null
}

class StoppedError extends Error {
  override readonly name = 'StoppedError'
}

/** The message is the reason that users see. */
class CommandFailedError extends Error {
  override readonly name = 'CommandFailedError'
}

/** An unsaved state is the only record of what exists. */
const toUnsavedStateLine = (file: string): DeploymentLogLine => ({
  phase: 'end',
  level: 'error',
  message: `The state could not be saved and was kept in PDM_DEPLOYMENTS_DIR as ${file}. Run \`terraform state push\` before creating this deployment again.`,
})

/** The values become names of files and variables, and keys of a backend. */
const validateRequest = ({ id, run, stateKey, variables, secrets }: ProvisioningRequest): void => {
  validateId(id)
  if (!/^[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?$/.test(stateKey))
    throw new RangeError('a state key must be a domain name')
  if (!Number.isSafeInteger(run) || run < 1) throw new RangeError('a run must be a positive integer')
  const names = [...Object.keys(variables), ...Object.keys(secrets)]
  if (!names.every(name => /^[a-z][a-z0-9_]*$/.test(name))) throw new RangeError('a variable name must be lower case')
  if (new Set(names).size < names.length) throw new RangeError('a variable must be either secret or not')
  const values = [...Object.values(variables), ...Object.values(secrets)]
  if (values.some(value => value.includes('\0')))
    throw new RangeError('an environment variable must not contain U+0000')
}

/** Drops the CLI configuration if its file does not exist, as Terraform rejects that. Terraform needs an absolute path. */
const resolveCliConfig = async ({ TF_CLI_CONFIG_FILE: file, ...env }: Env): Promise<Env> => {
  if (!file) return env
  const path = resolve(file)
  return access(path).then(
    () => ({ ...env, TF_CLI_CONFIG_FILE: path }),
    () => env,
  )
}

/**
 * Infrastructure by `terraform` or `tofu`. Each apply runs `init` and `apply` in a new working directory, with a root
 * module that calls the deployment module. Applies with the same state key queue within their own timeouts. Other
 * processes are excluded by Terraform's state lock, if the backend has one.
 */
class TerraformProvisioner implements Provisioner {
  readonly #options: TerraformOptions
  readonly #prerequisites: Prerequisites
  /** The result of the last version check. */
  #versionCheck: { readonly file: string; readonly problem: string | null } | undefined
  readonly #mutex = createKeyedMutex()

  constructor(options: TerraformOptions) {
    this.#options = options
    this.#prerequisites = {
      binary: options.binary,
      dataDir: resolve(options.dataDir),
      moduleDir: resolve(options.moduleDir ?? LOCAL_DEPLOYMENT_MODULE),
      env: toTerraformEnv({ PATH: options.env.PATH, HOME: options.env.HOME }, [], {}),
    }
  }

  async preflight(): Promise<string | null> {
    return (await this.#checkBinary()) ?? (await this.#checkDataDir()) ?? (await this.#checkModule())
  }

  async apply(
    request: ProvisioningRequest,
    log: (line: DeploymentLogLine) => void,
    signal: AbortSignal,
  ): Promise<ProvisioningResult> {
    validateRequest(request)
    const { timeoutMs } = this.#options
    const ended = AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)])
    try {
      return { kind: 'applied', outputs: await this.#applyExclusively(request, log, ended) }
    } catch (error) {
      if (error instanceof CommandFailedError) return { kind: 'failed', reason: error.message }
      if (!(error instanceof StoppedError)) throw error
      if (signal.aborted) return { kind: 'stopped' }
      return { kind: 'failed', reason: `Timed out after ${timeoutMs / 1_000} s (PDM_DEPLOYMENT_TIMEOUT).` }
    }
  }

  async destroy(): Promise<DestroyResult> {
    throw new Error('destroy is not implemented')
  }

  async plan(): Promise<PlanResult> {
    throw new Error('plan is not implemented')
  }

  async inspect(): Promise<StateInspection> {
    throw new Error('inspect is not implemented')
  }

  async archive(): Promise<void> {
    throw new Error('archive is not implemented')
  }

  async findLockHolder(): Promise<'running' | 'ended' | 'unknown'> {
    return 'unknown'
  }

  async unlock(): Promise<UnlockResult> {
    throw new Error('unlock is not implemented')
  }

  async cleanUp(id: string, run: number, log: (line: DeploymentLogLine) => void): Promise<void> {
    const states = await removeEarlierWorkdirs(this.#prerequisites.dataDir, id, run)
    for (const state of states) log(toUnsavedStateLine(state))
  }

  async #checkBinary(): Promise<string | null> {
    const path = await findBinary(this.#prerequisites)
    if (path !== null) return this.#checkVersion(path)
    const { binary } = this.#prerequisites
    return binary === null
      ? `Neither terraform nor tofu is on the PATH: ${INSTALL}, or set PDM_TERRAFORM_BINARY.`
      : `PDM_TERRAFORM_BINARY is ${binary}, which is not an executable file: ${INSTALL}.`
  }

  /** Runs the binary only if its file has changed since the last check. */
  async #checkVersion(path: string): Promise<string | null> {
    const { mtimeMs, size, ino } = await stat(path)
    const file = `${path} ${mtimeMs} ${size} ${ino}`
    if (this.#versionCheck?.file === file) return this.#versionCheck.problem
    const { env } = this.#prerequisites
    const result = await executeFile(path, ['version', '-json'], { env, timeout: VERSION_TIMEOUT_MS }).catch(() => null)
    const version = result && parseVersion(result.stdout)
    // Not cached: the machine may have been too busy for a response in time.
    if (!version)
      return `${path} did not report a version: set the path of Terraform or OpenTofu in PDM_TERRAFORM_BINARY.`
    const problem = isTooOld(version)
      ? `${path} is version ${version}, but ${MIN_VERSION} or later is required: ${INSTALL}, or set PDM_TERRAFORM_BINARY.`
      : null
    this.#versionCheck = { file, problem }
    return problem
  }

  #checkDataDir(): Promise<string | null> {
    const { dataDir } = this.#prerequisites
    return mkdir(dataDir, { recursive: true, mode: 0o700 })
      .then(() => access(dataDir, constants.W_OK | constants.X_OK))
      .then(
        () => null,
        () => `PDM_DEPLOYMENTS_DIR is ${dataDir}, which is not writable; check its permissions.`,
      )
  }

  async #checkModule(): Promise<string | null> {
    const { moduleDir } = this.#prerequisites
    const names = await readdir(moduleDir).catch(() => [])
    return names.some(isModuleFile)
      ? null
      : `PDM_TERRAFORM_MODULE is ${moduleDir}, which is not a directory with a Terraform module.`
  }

  async #applyExclusively(request: ProvisioningRequest, log: (line: DeploymentLogLine) => void, ended: AbortSignal) {
    const { id, run, stateKey, variables, secrets } = request
    const { backend, env, passthrough } = this.#options
    const { dataDir } = this.#prerequisites
    const release = await this.#mutex.acquire(stateKey, ended)
    if (!release) throw new StoppedError()
    const mask = createMask([...Object.values(secrets), ...findEnvSecrets(env, passthrough)])
    const collector = new OutputCollector(mask, log)
    try {
      const file = await findBinary(this.#prerequisites)
      if (file === null)
        throw new CommandFailedError((await this.preflight()) ?? 'The Terraform binary has disappeared.')
      const names = { variables: Object.keys(variables), secrets: Object.keys(secrets) }
      const cwd = await createWorkdir(this.#prerequisites, { id, run, stateKey, backend, ...names })
      const execute = async (phase: 'init' | 'apply', args: readonly string[]) => {
        if (ended.aborted) throw new StoppedError()
        return this.#execute({ phase, file, args, cwd, values: { ...variables, ...secrets }, collector, ended })
      }
      await execute('init', INIT)
      const outputs = await execute('apply', APPLY)
      return Object(maskValue(outputs, mask))
    } finally {
      release()
      // A leftover directory must not turn a successful apply into a failure.
      const state = await removeWorkdir(dataDir, id, run).catch(() => {
        log({ phase: 'end', level: 'warn', message: 'The working directory could not be removed.' })
        return null
      })
      if (state) log(toUnsavedStateLine(state))
    }
  }

  /** Returns the outputs that the command printed. */
  async #execute({ phase, file, args, cwd, values, collector, ended }: CommandRun) {
    const { env, passthrough, graceMs = DEFAULT_GRACE_MS } = this.#options
    const output = collector.forPhase(phase)
    const exit = await runInProcessGroup({
      file,
      args,
      cwd,
      env: toTerraformEnv(await resolveCliConfig(env), passthrough, values),
      onOutput: (stream, chunk) => output.write(stream, chunk),
      signal: ended,
      graceMs,
    })
    output.end()
    if (exit.code === 0) return output.outputs() ?? {}
    if (ended.aborted) throw new StoppedError()
    const status = exit.signal ?? `exit code ${exit.code}`
    throw new CommandFailedError(output.reason() ?? `${phase} ended with ${status} and gave no reason.`)
  }
}

interface CommandRun {
  readonly phase: 'init' | 'apply'
  readonly file: string
  readonly args: readonly string[]
  readonly cwd: string
  /** Values of the module's variables. */
  readonly values: Readonly<Record<string, string>>
  readonly collector: OutputCollector
  readonly ended: AbortSignal
}

export const createTerraform = (options: TerraformOptions): Provisioner => new TerraformProvisioner(options)

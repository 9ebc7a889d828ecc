import { constants } from 'node:fs'
import { access, type FileHandle, open, realpath, rm } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import type { Backend } from '../../config/terraform.ts'
import { createLineSplitter, isJsonObject, parseJson } from '../../lib/text.ts'
import type { StateLock } from '../domain/types.ts'
import { type CreationEvent, type OutputCollector, parseCreation } from './domain/output.ts'
import { toIsolatedCommand, type VisiblePaths } from './isolation.ts'
import {
  type Captured,
  captureOutput,
  identifyProcessGroup,
  type ProcessCommand,
  type ProcessExit,
  type ProcessGroupIdentity,
  runInProcessGroup,
} from './process-group.ts'
import { LIST_VARIABLES, toLockFilePath } from './workdir.ts'

export class StoppedError extends Error {
  override readonly name = 'StoppedError'
}

/** The message is the reason that users see. */
export class CommandFailedError extends Error {
  override readonly name = 'CommandFailedError'
}

export type OnLock = (lock: StateLock | null) => Promise<void>
type Phase = 'init' | 'apply' | 'destroy'

interface ExecuteOptions {
  readonly file3?: FileHandle
  readonly onLock?: OnLock
  /** Called after the command, before its errors are logged. */
  readonly onEnded?: () => Promise<void>
  readonly onCreation?: (event: CreationEvent) => void
  readonly onExit?: (exit: ProcessExit) => void
}

type Environment = Readonly<Record<string, string>>

export interface SessionOptions {
  readonly binary: string
  /** Working directory. */
  readonly cwd: string
  /** What Terraform inherits from the service. */
  readonly env: Environment
  /** Values of the module's variables. */
  readonly values: Readonly<Record<string, string>>
  readonly backend: Backend
  readonly stateKey: string
  readonly collector: OutputCollector
  readonly ended: AbortSignal
  /** Ends a command at once. */
  readonly force: AbortSignal | undefined
  /** How long a command that changes infrastructure is waited for after its interrupt. Milliseconds. */
  readonly stopTimeoutMs: number
  /** What the commands see; null: everything that the service sees. */
  readonly visible: ((env: Environment) => VisiblePaths) | null
}

/** Characters of a state, a plan or an error that a command prints. */
const MAX_CAPTURE = 64 * 1_024 * 1_024
/** A lock is looked up and lifted, and the state is read, also after the command was stopped. */
const FINAL_TIMEOUT_MS = 30_000
/** Longer lines neither report a created resource nor prove a lock. In characters. */
const MAX_LINE = 256 * 1_024
/** Characters at the end of the output in which RELEASE_FAILED is searched. */
const MAX_TAIL = 4_096
const RELEASE_FAILED = 'Error releasing the state lock'

/** The same for every other command. */
const MAX_QUICK_STOP_MS = 30_000

type CommandOptions = Pick<ProcessCommand, 'onOutput'> &
  Partial<Pick<ProcessCommand, 'signal' | 'force' | 'file3' | 'onStarted'>>

/** Drops the CLI configuration if its file does not exist, as Terraform rejects that. Terraform needs an absolute path. */
const resolveCliConfig = async ({ TF_CLI_CONFIG_FILE: file, ...env }: Environment): Promise<Environment> => {
  if (!file) return env
  const path = resolve(file)
  return access(path).then(
    () => ({ ...env, TF_CLI_CONFIG_FILE: path }),
    () => env,
  )
}

/** The file descriptor of the plan that a command writes, shows or applies. */
export const PLAN_FILE = '/dev/fd/3'
/** The commands that need the values of the module's variables. A plan that is applied has them. */
const needsValues = ([name = '', ...rest]: readonly string[]): boolean =>
  ['plan', 'apply', 'destroy'].includes(name) && !rest.includes(PLAN_FILE)
/** A command reads the values from a pipe, so that they are in no file and in no environment of a process. */
const VALUES = '-var-file=/dev/stdin'

/** In the syntax of HCL, whose strings have fewer escapes than those of JSON, and templates. */
const toHcl = (value: unknown): string =>
  JSON.stringify(value)
    .replace(/\\[\\bf]/g, pair => (pair === '\\b' ? '\\u0008' : pair === '\\f' ? '\\u000c' : pair))
    .replace(/[$%](?=\{)/g, '$&$&')

/** The content of a variable file. */
export const toVariableFile = (values: Readonly<Record<string, string>>): string =>
  Object.entries(values)
    .map(([name, value]) => `${name} = ${toHcl(LIST_VARIABLES.has(name) ? parseJson(value) : value)}\n`)
    .join('')

/** Runs the commands of one operation in its working directory. */
export class TerraformSession {
  readonly #options: SessionOptions

  constructor(options: SessionOptions) {
    this.#options = options
  }

  get cwd(): string {
    return this.#options.cwd
  }

  get ended(): AbortSignal {
    return this.#options.ended
  }

  /** Runs a command whose output is logged, and returns the outputs that it printed; null if none could be read. */
  async execute(
    phase: Phase,
    args: readonly string[],
    { file3, onLock, onCreation, onExit, onEnded }: ExecuteOptions = {},
  ): Promise<Readonly<Record<string, unknown>> | null> {
    this.throwIfEnded()
    const output = this.#options.collector.forPhase(phase)
    const recorder = onLock && this.#createRecorder(onLock)
    const lines = createLineSplitter(MAX_LINE, line => {
      recorder?.onLine(line)
      const event = onCreation && parseCreation(line)
      if (event) onCreation(event)
    })
    let text = ''
    const exit = await this.#run(args, {
      ...this.#force,
      ...(file3 && { file3: file3.fd }),
      onStarted: leader => recorder?.onStarted(leader),
      onOutput: (stream, chunk) => {
        output.write(stream, chunk)
        if (stream === 'stdout') lines.push(chunk)
        text = (text + chunk).slice(-MAX_TAIL)
      },
    })
    onExit?.(exit)
    await recorder?.finish(exit.code !== null && !text.includes(RELEASE_FAILED))
    await onEnded?.()
    output.end()
    if (exit.code === 0) return output.outputs() ?? null
    return this.#fail(args, exit, output.reason())
  }

  /** From now on, these values are masked in logs and reasons. */
  hide(sensitive: readonly string[]): void {
    if (sensitive.length > 0) this.#options.collector.hide(sensitive)
  }

  /** Runs a command and returns what it printed, which is logged nowhere. */
  async capture(args: readonly string[], file3?: FileHandle): Promise<string> {
    this.throwIfEnded()
    const { exit, stdout, stderr } = await this.#capture(args, {
      ...this.#force,
      ...(file3 && { file3: file3.fd }),
    })
    if (exit.code === 0 && stdout.length < MAX_CAPTURE) return stdout
    if (exit.code === 0) throw new CommandFailedError(`The output of ${args[0]} is too large.`)
    const output = this.#options.collector.silent()
    output.write('stdout', args.includes('-json') ? stdout : '')
    output.write('stderr', stderr)
    output.end()
    return this.#fail(args, exit, output.reason())
  }

  /** A file without a name: it is gone when the last process that has it open ends. A plan file contains all secrets. */
  async openPlanFile(): Promise<FileHandle> {
    const path = join(this.cwd, 'plan')
    const { O_RDWR, O_CREAT, O_EXCL } = constants
    const file = await open(path, O_RDWR | O_CREAT | O_EXCL, 0o600)
    await rm(path)
    return file
  }

  /** The state, or null if it cannot be read. Works also after the session has ended. */
  async pullStateAtEnd(): Promise<string | null> {
    const { exit, stdout } = await this.#captureAtEnd(['state', 'pull'])
    return exit.code === 0 && stdout.length < MAX_CAPTURE ? stdout : null
  }

  /** Waits for a Terraform that an earlier run left, which may still be saving what it created. */
  async waitForLock(): Promise<void> {
    await this.capture(toProbe(Math.ceil(this.#options.stopTimeoutMs / 1_000) + 60))
  }

  /** The lock that the state has now. Works also after the session has ended. */
  async probeLock(): Promise<LockProbe> {
    const { exit, stdout, stderr } = await this.#captureAtEnd(toProbe(0))
    return parseProbe(exit.code, stdout + stderr)
  }

  /** Lifts this lock if the state has it, and no other one. Returns what the state had. */
  async lift(id: string): Promise<LockProbe> {
    const probe = await this.probeLock()
    // Some backends lift any lock, whatever the ID.
    if (probe.kind !== 'locked' || probe.id !== id) return probe
    const { exit } = await this.#captureAtEnd(['force-unlock', '-force', '-no-color', id])
    return exit.code === 0 ? probe : { kind: 'unknown' }
  }

  throwIfEnded(): void {
    if (this.#options.ended.aborted) throw new StoppedError()
  }

  #createRecorder(onLock: OnLock): LockRecorder {
    return new LockRecorder({
      onLock,
      findLockId: () => this.#findLockId(),
      lift: async id => {
        const found = await this.lift(id)
        return found.kind === 'not-locked' || (found.kind === 'locked' && found.id === id)
      },
    })
  }

  async #findLockId(): Promise<string | null> {
    const { backend, stateKey } = this.#options
    const file = toLockFilePath(backend, stateKey)
    if (file !== null) return parseLockFile(await readLockFile(file))
    const probe = await this.probeLock()
    return probe.kind === 'locked' ? probe.id : null
  }

  get #force(): Partial<Pick<ProcessCommand, 'force'>> {
    const { force } = this.#options
    return force ? { force } : {}
  }

  #captureAtEnd(args: readonly string[]): Promise<Captured> {
    return this.#capture(args, { signal: AbortSignal.timeout(FINAL_TIMEOUT_MS) })
  }

  #capture(args: readonly string[], more: Omit<CommandOptions, 'onOutput'>): Promise<Captured> {
    return captureOutput(MAX_CAPTURE, onOutput => this.#run(args, { onOutput, ...more }))
  }

  async #run(args: readonly string[], more: CommandOptions): Promise<ProcessExit> {
    const { binary, cwd, env: inherited, values, stopTimeoutMs, ended, visible } = this.#options
    const env = await resolveCliConfig(inherited)
    const [name = '', ...rest] = args
    const hasValues = needsValues(args)
    const command = [binary, name, ...(hasValues ? [VALUES] : []), ...rest] as const
    const [file, ...all] = visible ? toIsolatedCommand(command, await realpath(cwd), visible(env)) : command
    const graceMs = name === 'apply' || name === 'destroy' ? stopTimeoutMs : Math.min(stopTimeoutMs, MAX_QUICK_STOP_MS)
    const input = hasValues ? toVariableFile(values) : ''
    return runInProcessGroup({ file, args: all, cwd, env, input, signal: ended, graceMs, ...more })
  }

  #fail([command]: readonly string[], exit: ProcessExit, reason: string | null): never {
    this.throwIfEnded()
    if (!exit.signal) {
      throw new CommandFailedError(reason ?? `${command} ended with exit code ${exit.code} and gave no reason.`)
    }
    const ending = `${command} was ended by ${exit.signal}: check the log of the system for the cause, such as too little memory.`
    throw new CommandFailedError(reason ? `${ending} Its last output: ${reason}` : ending)
  }
}

/** What a state lock looks like from another process. */
type LockProbe =
  | { readonly kind: 'not-locked' }
  | { readonly kind: 'locked'; readonly id: string }
  /** The state is locked and the backend does not show by which lock, or it cannot be reached. */
  | { readonly kind: 'unknown' }

/**
 * A command that takes the lock and releases it, and changes nothing: the root module has no such resource. It needs no
 * input variables.
 */
const toProbe = (seconds: number) =>
  ['untaint', '-no-color', '-allow-missing', `-lock-timeout=${seconds}s`, 'terraform_data.none'] as const

/** What the probe's own lock is for. */
const PROBE_OPERATION = 'untaint'

/** The error of a probe: https://developer.hashicorp.com/terraform/language/state/locking */
export const parseProbe = (exitCode: number | null, output: string): LockProbe => {
  if (exitCode === 0) return { kind: 'not-locked' }
  const named = /already locked:\s+ID=(\S+)/.exec(output)?.[1]
  if (named) return { kind: 'locked', id: named }
  const id = /^\s*ID:[ \t]+(\S+)/m.exec(output)?.[1]
  const operation = /^\s*Operation:[ \t]+(\S+)/m.exec(output)?.[1]
  // Some backends show the lock that could not be taken instead of the one that exists.
  return id && operation && operation !== PROBE_OPERATION ? { kind: 'locked', id } : { kind: 'unknown' }
}

/** The module can replace the file by a link to another one, by a pipe that nobody writes to, or by a large file. */
export const readLockFile = async (path: string): Promise<string> => {
  const { O_RDONLY, O_NOFOLLOW, O_NONBLOCK } = constants
  const file = await open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK)
  const { buffer, bytesRead } = await file.read({ buffer: Buffer.alloc(MAX_LINE) }).finally(() => file.close())
  return buffer.toString('utf8', 0, bytesRead)
}

/** The ID in the file that the `local` backend keeps beside a locked state; null if it has another format. */
export const parseLockFile = (text: string): string | null => {
  const info = parseJson(text)
  return isJsonObject(info) && typeof info.ID === 'string' && info.ID !== '' ? info.ID : null
}

/** Whether this line of the machine-readable UI shows that the command holds the lock: it has read the state. */
export const isProofOfLock = (line: string): boolean =>
  /^\{.*"type":"(?:refresh_start|refresh_complete|resource_drift|planned_change|change_summary|apply_start|apply_progress|apply_complete|provision_\w+)"/.test(
    line,
  )

interface LockRecorderOptions {
  /** The ID of the lock that the state has now; null if it has none or its backend does not show it. */
  readonly findLockId: () => Promise<string | null>
  /** Lifts this lock, whose process group has ended. Returns whether it is known to be gone. */
  readonly lift: (id: string) => Promise<boolean>
  readonly onLock: (lock: StateLock | null) => Promise<void>
}

/**
 * Reports the lock that a command takes. Terraform does not show the ID of its own lock. While the command holds the lock,
 * no other lock of this state exists, so the ID that the state shows is its own. A command that is killed before this was
 * found out leaves a lock that is not recorded.
 */
class LockRecorder {
  readonly #options: LockRecorderOptions
  #holder: ProcessGroupIdentity | undefined
  #hasExited = false
  #recorded: Promise<string | null> | undefined

  constructor(options: LockRecorderOptions) {
    this.#options = options
  }

  onStarted(leader: number): void {
    this.#holder = identifyProcessGroup(leader)
  }

  /** A line of the command's standard output. */
  onLine(line: string): void {
    if (!this.#recorded && isProofOfLock(line)) this.#recorded = this.#record()
  }

  /** Call after the exit. Reports the end of the lock, if it was recorded and is known to be gone. */
  async finish(hasReleased: boolean): Promise<void> {
    this.#hasExited = true
    const id = await this.#recorded
    if (id && (hasReleased || (await this.#options.lift(id)))) await this.#report(null)
  }

  async #record(): Promise<string | null> {
    const id = await this.#options.findLockId().catch(() => null)
    // After the exit, another process may have taken the lock.
    if (id === null || this.#hasExited || !this.#holder) return null
    await this.#report({ id, ...this.#holder })
    return id
  }

  /** A lock that could not be recorded is only harder to lift. */
  #report(lock: StateLock | null): Promise<void> {
    return this.#options.onLock(lock).catch(() => {})
  }
}

import { constants } from 'node:fs'
import { access, type FileHandle, open, readFile, rm } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import type { Env } from '@pool/runtime/service/env'
import { type Backend, toTerraformEnv } from '../../config/terraform.ts'
import { createLineSplitter } from '../../lib/line-splitter.ts'
import type { StateLock } from '../domain/types.ts'
import { type LockProbe, PROBE, parseLockFile, parseProbe } from './domain/lock.ts'
import { type CreatedResource, type OutputCollector, parseCreatedResource } from './domain/output.ts'
import { LockRecorder } from './lock-recorder.ts'
import { type ProcessExit, runInProcessGroup } from './process-group.ts'
import { toLockFilePath } from './workdir.ts'

export class StoppedError extends Error {
  override readonly name = 'StoppedError'
}

/** The message is the reason that users see. */
export class CommandFailedError extends Error {
  override readonly name = 'CommandFailedError'
}

export type OnLock = (lock: StateLock | null) => Promise<void>
type Phase = 'init' | 'apply' | 'destroy'

export interface ExecuteObserver {
  readonly onLock?: OnLock
  readonly onCreated?: (resource: CreatedResource) => void
}

export interface SessionOptions {
  readonly binary: string
  /** Working directory. */
  readonly cwd: string
  /** The environment of the service, of which Terraform inherits a part. */
  readonly env: Env
  readonly passthrough: readonly string[]
  /** Values of the module's variables. */
  readonly values: Readonly<Record<string, string>>
  readonly backend: Backend
  readonly stateKey: string
  readonly collector: OutputCollector
  readonly ended: AbortSignal
  /** Milliseconds. */
  readonly graceMs: number
}

/** Characters of a state, a plan or an error that a command prints. */
const MAX_CAPTURE = 64 * 1_024 * 1_024
/** A lock is looked up and lifted, and the state is read, also after the command was stopped. */
const FINAL_TIMEOUT_MS = 30_000
/** Longer lines do not report a created resource. In characters. */
const MAX_LINE = 256 * 1_024
/** Characters at the end of the output in which RELEASE_FAILED is searched. */
const MAX_TAIL = 4_096
const RELEASE_FAILED = 'Error releasing the state lock'

interface Captured {
  readonly exit: ProcessExit
  readonly stdout: string
  readonly stderr: string
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

/** Runs the commands of one operation in its working directory. */
export class TerraformSession {
  readonly #options: SessionOptions

  constructor(options: SessionOptions) {
    this.#options = options
  }

  get cwd(): string {
    return this.#options.cwd
  }

  /** Runs a command whose output is logged, and returns the outputs that it printed. */
  async execute(
    phase: Phase,
    args: readonly string[],
    { onLock, onCreated }: ExecuteObserver = {},
  ): Promise<Readonly<Record<string, unknown>>> {
    this.throwIfEnded()
    const output = this.#options.collector.forPhase(phase)
    const recorder = onLock && this.#createRecorder(onLock)
    const lines = createLineSplitter(MAX_LINE, line => {
      const created = parseCreatedResource(line)
      if (created) onCreated?.(created)
    })
    let text = ''
    const exit = await this.#run(args, {
      onStarted: leader => recorder?.onStarted(leader),
      onOutput: (stream, chunk) => {
        output.write(stream, chunk)
        if (stream === 'stdout') {
          recorder?.write(chunk)
          lines.push(chunk)
        }
        text = (text + chunk).slice(-MAX_TAIL)
      },
    })
    output.end()
    await recorder?.finish(exit.code !== null && !text.includes(RELEASE_FAILED))
    if (exit.code === 0) return output.outputs() ?? {}
    return this.#fail(args, exit, output.reason())
  }

  /** Runs a command and returns what it printed, which is logged nowhere. */
  async capture(args: readonly string[], file3?: FileHandle): Promise<string> {
    this.throwIfEnded()
    const { exit, stdout, stderr } = await this.#capture(args, this.#options.ended, file3)
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
    const { exit, stdout } = await this.#capture(['state', 'pull'], AbortSignal.timeout(FINAL_TIMEOUT_MS))
    return exit.code === 0 && stdout.length < MAX_CAPTURE ? stdout : null
  }

  /** The lock that the state has now. Works also after the session has ended. */
  async probeLock(): Promise<LockProbe> {
    const { exit, stdout, stderr } = await this.#capture(PROBE, AbortSignal.timeout(FINAL_TIMEOUT_MS))
    return parseProbe(exit.code, stdout + stderr)
  }

  /** Lifts this lock if the state has it, and no other one. Returns what the state had. */
  async lift(id: string): Promise<LockProbe> {
    const probe = await this.probeLock()
    // Some backends lift any lock, whatever the ID.
    if (probe.kind !== 'locked' || probe.id !== id) return probe
    const signal = AbortSignal.timeout(FINAL_TIMEOUT_MS)
    const { exit } = await this.#capture(['force-unlock', '-force', '-no-color', id], signal)
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
    if (file !== null) return parseLockFile(await readFile(file, 'utf8'))
    const probe = await this.probeLock()
    return probe.kind === 'locked' ? probe.id : null
  }

  async #capture(args: readonly string[], signal: AbortSignal, file3?: FileHandle): Promise<Captured> {
    const text = { stdout: '', stderr: '' }
    const onOutput = (stream: 'stdout' | 'stderr', chunk: string) => {
      if (text[stream].length < MAX_CAPTURE) text[stream] += chunk
    }
    const exit = await this.#run(args, { onOutput, signal, ...(file3 && { file3: file3.fd }) })
    return { exit, ...text }
  }

  async #run(args: readonly string[], more: CommandOptions): Promise<ProcessExit> {
    const { binary, cwd, env, passthrough, values, graceMs, ended } = this.#options
    return runInProcessGroup({
      file: binary,
      args,
      cwd,
      env: toTerraformEnv(await resolveCliConfig(env), passthrough, values),
      signal: ended,
      graceMs,
      ...more,
    })
  }

  #fail([command]: readonly string[], exit: ProcessExit, reason: string | null): never {
    this.throwIfEnded()
    const status = exit.signal ?? `exit code ${exit.code}`
    throw new CommandFailedError(reason ?? `${command} ended with ${status} and gave no reason.`)
  }
}

type CommandOptions = Pick<Parameters<typeof runInProcessGroup>[0], 'onOutput'> &
  Partial<Pick<Parameters<typeof runInProcessGroup>[0], 'signal' | 'file3' | 'onStarted'>>

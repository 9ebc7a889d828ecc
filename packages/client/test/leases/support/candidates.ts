import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, constants, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync, writeSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { COMPILE_CACHE } from '@pool/dev/process'
import type { ClockStep } from './clock-watch.ts'
import type { TenureSummary } from './tenure-judge.ts'

export interface CandidateSettings {
  readonly name: string
  readonly url: string
  readonly token: string
  readonly slots: readonly string[]
  /** The pipe of the observer. */
  readonly pipe: string
  readonly durations: { readonly leaseDuration: number; readonly renewDeadline: number; readonly retryPeriod: number }
  /** Sends the renewals of all slots in one request. Only with one candidate for each slot. */
  readonly isBatched?: boolean
  /** The number of electors for each slot: 1 by default. The first has the name of the process, others have a suffix. */
  readonly candidatesPerSlot?: number
  readonly env?: Readonly<Record<string, string>>
}

export interface CandidateProcess extends AsyncDisposable {
  readonly name: string
  send(command: string): void
  signal(name: 'SIGSTOP' | 'SIGCONT' | 'SIGKILL'): void
  /** Cancels the electors. Resolves when the process has exited. */
  stop(): Promise<void>
  readonly hasExited: boolean
  /** What it wrote to stderr. */
  readonly errors: () => string
}

export interface ObservedTenures extends TenureSummary {
  /** The steps of the wall clock of the machine. */
  readonly machineClockSteps: readonly ClockStep[]
}

export interface Observer extends AsyncDisposable {
  /** For the candidates. */
  readonly pipe: string
  /** Writes a line as if the candidate `test` had. */
  report(line: string): void
  /** The starts and stops so far, one line for each: `<ms> <candidate> <start or stop> <slot> <data>`. */
  readLog(): string
  readonly hasExited: boolean
  /** What it wrote to stderr. */
  readonly errors: () => string
  /** Ends the observation, after the candidates have exited. The summary is for candidates with one elector for each slot. */
  summarize(): Promise<ObservedTenures>
}

const CANDIDATE = join(import.meta.dirname, 'candidate.ts')
const OBSERVER = join(import.meta.dirname, 'observer.ts')

/** Starts a script that writes a line when it is ready. */
const startProcess = (args: readonly string[], env: NodeJS.ProcessEnv) => {
  const child = spawn(process.execPath, args, {
    env: { PATH: process.env.PATH, NODE_COMPILE_CACHE: COMPILE_CACHE, ...env },
    stdio: ['pipe', 'pipe', 'pipe'],
  })
  let errors = ''
  let hasExited = false
  const exited = once(child, 'close').then(() => {
    hasExited = true
  })
  child.stderr.on('data', (text: Buffer) => {
    errors = (errors + text).slice(-10_000)
  })
  // A process that was killed does not read its commands.
  child.stdin.on('error', () => {})
  const waitUntilReady = async () => {
    const isReady = await Promise.race([once(child.stdout, 'data').then(() => true), exited.then(() => false)])
    if (!isReady) throw new Error(`${args[0]} exited before it was ready:\n${errors}`)
    child.stdout.resume()
  }
  return {
    ready: waitUntilReady(),
    exited,
    get hasExited() {
      return hasExited
    },
    errors: () => errors,
    kill: (signal: NodeJS.Signals) => void child.kill(signal),
    writeLine: (line: string) => void child.stdin.write(`${line}\n`),
  }
}

/** Starts observer.ts with a pipe of its own. Rejects with its output if it exits before it is ready. */
export const startObserver = async (): Promise<Observer> => {
  const folder = mkdtempSync(join(tmpdir(), 'observer-'))
  const [pipe, log, summary] = ['pipe', 'log', 'summary'].map(name => join(folder, name)) as [string, string, string]
  execFileSync('mkfifo', [pipe])
  writeFileSync(log, '')
  const child = startProcess([OBSERVER, pipe, log, summary], {})
  await child.ready
  // Without a reader, this fails instead of waiting for one.
  const file = openSync(pipe, constants.O_WRONLY | constants.O_NONBLOCK)
  const report = (line: string) => void writeSync(file, `test ${line}\n`)
  return {
    pipe,
    report,
    readLog: () => readFileSync(log, 'utf8'),
    get hasExited() {
      return child.hasExited
    },
    errors: child.errors,
    async summarize() {
      report('end')
      await child.exited
      return JSON.parse(readFileSync(summary, 'utf8'))
    },
    async [Symbol.asyncDispose]() {
      closeSync(file)
      child.kill('SIGKILL')
      await child.exited
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

/** Starts candidate.ts. Rejects with its output if it exits before it is ready. */
export const startCandidate = async (settings: CandidateSettings): Promise<CandidateProcess> => {
  const { name, url, token, slots, pipe, durations, isBatched = false, candidatesPerSlot = 1, env = {} } = settings
  const child = startProcess([CANDIDATE], {
    URL: url,
    TOKEN: token,
    NAME: name,
    SLOTS: slots.join(','),
    PIPE: pipe,
    DURATIONS: JSON.stringify(durations),
    BATCH: isBatched ? '1' : '0',
    CANDIDATES: String(candidatesPerSlot),
    ...env,
  })
  await child.ready
  return {
    name,
    send: child.writeLine,
    signal: child.kill,
    async stop() {
      child.kill('SIGCONT')
      child.writeLine('stop')
      await child.exited
    },
    get hasExited() {
      return child.hasExited
    },
    errors: child.errors,
    async [Symbol.asyncDispose]() {
      child.kill('SIGKILL')
      await child.exited
    },
  }
}

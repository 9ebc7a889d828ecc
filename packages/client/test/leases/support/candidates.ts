import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { COMPILE_CACHE } from '@pool/dev-server/process'

export interface CandidateSettings {
  readonly name: string
  readonly url: string
  readonly token: string
  readonly slots: readonly string[]
  /** The file to which all candidates append their events. */
  readonly events: string
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

const ENTRY = join(import.meta.dirname, 'candidate.ts')

/** Starts candidate.ts. Rejects with its output if it exits before it is ready. */
export const startCandidate = async (settings: CandidateSettings): Promise<CandidateProcess> => {
  const { name, url, token, slots, events, durations, isBatched = false, candidatesPerSlot = 1, env = {} } = settings
  const child = spawn(process.execPath, [ENTRY], {
    env: {
      PATH: process.env.PATH,
      NODE_COMPILE_CACHE: COMPILE_CACHE,
      URL: url,
      TOKEN: token,
      NAME: name,
      SLOTS: slots.join(','),
      EVENTS: events,
      DURATIONS: JSON.stringify(durations),
      BATCH: isBatched ? '1' : '0',
      CANDIDATES: String(candidatesPerSlot),
      ...env,
    },
    stdio: ['pipe', 'pipe', 'pipe'],
  })
  let errors = ''
  let hasExited = false
  const exited = once(child, 'exit').then(() => {
    hasExited = true
  })
  child.stderr.on('data', (text: Buffer) => {
    errors = (errors + text).slice(-10_000)
  })
  // A process that was killed does not read its commands.
  child.stdin.on('error', () => {})
  const isReady = await Promise.race([once(child.stdout, 'data').then(() => true), exited.then(() => false)])
  if (!isReady) throw new Error(`candidate ${name} exited before it was ready:\n${errors}`)
  child.stdout.resume()
  return {
    name,
    send: command => void child.stdin.write(`${command}\n`),
    signal: signalName => void child.kill(signalName),
    async stop() {
      child.kill('SIGCONT')
      child.stdin.write('stop\n')
      await exited
    },
    get hasExited() {
      return hasExited
    },
    errors: () => errors,
    async [Symbol.asyncDispose]() {
      child.kill('SIGKILL')
      await exited
    },
  }
}

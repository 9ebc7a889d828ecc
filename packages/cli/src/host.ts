import type { ReadStream, WriteStream } from 'node:tty'

type Input = NodeJS.ReadableStream & Partial<Pick<ReadStream, 'isTTY' | 'setRawMode'>>
type Display = NodeJS.WritableStream & Partial<Pick<WriteStream, 'isTTY' | 'columns'>>

/** The process that runs a command. Tests pass their own. */
export interface Host {
  readonly env: NodeJS.ProcessEnv
  readonly stdin: Input
  readonly stdout: Display
  readonly stderr: Display
  /** The file that starts poolctl, for the process that keeps the command of an election. */
  readonly entry: string
  readonly fetch: typeof fetch
  /** Aborted by the first SIGINT, SIGTERM or SIGHUP, with the name of the signal as the reason. */
  readonly interrupted: AbortSignal
  /** Aborted by the second one. */
  readonly killed: AbortSignal
}

/** Turns signals into the two AbortSignals of a host. */
export const watchSignals = (): Pick<Host, 'interrupted' | 'killed'> => {
  const interrupted = new AbortController()
  const killed = new AbortController()
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    process.on(signal, () => (interrupted.signal.aborted ? killed : interrupted).abort(signal))
  }
  return { interrupted: interrupted.signal, killed: killed.signal }
}

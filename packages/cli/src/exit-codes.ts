/**
 * The exit codes of poolctl. Like grep and diff, 0 and 1 are answers, and an error is 2 or more. Scripts depend on them.
 */
export const EXIT = {
  done: 0,
  /** The answer is negative: the name is not free, the keys are rejected, the zone differs, the deployment failed. */
  negative: 1,
  /** The command line, the contexts or an input file is invalid. Nothing was sent. */
  usage: 2,
  /** The service rejected the request. The same request is rejected again unless something changes. */
  rejected: 3,
  /** The service did not respond in time, or it cannot serve the request at the moment. */
  unavailable: 4,
  /** Something on this machine failed: a file, a token command, a terminal. */
  local: 5,
  /** A defect of poolctl. */
  internal: 70,
} as const

/** The exit codes of `leases elect` itself, as those of timeout(1) and env(1). Every other code is that of the command. */
export const ELECT_EXIT = {
  /** The lease was lost, so the command was stopped. */
  leaseLost: 124,
  /** The election failed before the command started. */
  failed: 125,
  /** The command exists and cannot be executed. */
  cannotExecute: 126,
  /** The command was not found. */
  notFound: 127,
} as const

const SIGNAL_NUMBERS: Readonly<Record<string, number>> = { SIGHUP: 1, SIGINT: 2, SIGQUIT: 3, SIGKILL: 9, SIGTERM: 15 }

/** The exit code of a process that a signal ended, as a shell reports it. */
export const toSignalExit = (signal: string): number => 128 + (SIGNAL_NUMBERS[signal] ?? 15)

/** An error that ends the command with one line for the user: what is wrong, then what to do. A line for each detail follows. */
export class CommandError extends Error {
  override readonly name: string = 'CommandError'
  readonly exitCode: number
  readonly details: readonly string[]

  constructor(message: string, exitCode: number, details: readonly string[] = []) {
    super(message)
    this.exitCode = exitCode
    this.details = details
  }
}

/** The command line or an input file is invalid. */
export class UsageError extends CommandError {
  override readonly name = 'UsageError'

  constructor(message: string) {
    super(message, EXIT.usage)
  }
}

/** Something on this machine failed. */
export class LocalError extends CommandError {
  override readonly name = 'LocalError'

  constructor(message: string) {
    super(message, EXIT.local)
  }
}

/** The user interrupted the command. */
export class InterruptedError extends CommandError {
  override readonly name = 'InterruptedError'

  constructor(signal: string, message = 'interrupted') {
    super(message, toSignalExit(signal))
  }
}

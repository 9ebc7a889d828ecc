import { CommandError, EXIT } from './exit-codes.ts'
import { toPlainLine } from './text.ts'

export interface Failure {
  /** Lines for standard error. */
  readonly text: string
  readonly exitCode: number
}

const toError = (message: string, exitCode: number): Failure => ({ text: `error: ${toPlainLine(message)}\n`, exitCode })

/** What to print for an error, and the exit code. Nothing in it is a secret. */
export const describeFailure = (error: unknown): Failure => {
  if (error instanceof CommandError) return toError(error.message, error.exitCode)
  const what = error instanceof Error ? `${error.name}: ${error.message}` : String(error)
  return toError(`${what}. This is a defect of poolctl; report it with the command.`, EXIT.internal)
}

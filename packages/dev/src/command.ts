import { resolve } from 'node:path'
import { readStartSettings } from './settings.ts'
import { watchShutdownSignals } from './signals.ts'
import { type Entries, runStack } from './stack.ts'
import { UserError } from './user-error.ts'

/** `pnpm start` for given entry files. Prints errors without a stack trace if the user can fix them, and sets the exit code. */
export async function startCommand(projectRoot: string, entries: Entries): Promise<void> {
  // A closed terminal or `| head` must not prevent a clean shutdown.
  process.stdout.on('error', () => {})
  process.stderr.on('error', () => {})
  try {
    process.exitCode = await runStack(readStartSettings(process.env, projectRoot), {
      entries: {
        api: resolve(projectRoot, entries.api),
        witness: resolve(projectRoot, entries.witness),
        console: resolve(projectRoot, entries.console),
      },
      signals: watchShutdownSignals(),
      print: text => process.stdout.write(text),
    })
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error)
    process.stderr.write(error instanceof UserError ? `${message}\n` : `could not start: ${message}\n`)
    process.exitCode = error instanceof UserError ? error.exitCode : 1
  }
}

import { resolve } from 'node:path'
import { readSettings } from './settings.ts'
import { watchInterrupts } from './signals.ts'
import { type Entries, runStack } from './stack.ts'
import { PlainError } from './user-error.ts'

/** `pnpm start`, apart from where it is called: what goes wrong is told in plain words, and the exit code is set. */
export async function startCommand(projectRoot: string, entries: Entries): Promise<void> {
  // A reader that went away (a closed terminal, `| head`) must not keep the rest from ending in order.
  process.stdout.on('error', () => {})
  process.stderr.on('error', () => {})
  try {
    process.exitCode = await runStack(readSettings(process.env, projectRoot), {
      entries: { api: resolve(projectRoot, entries.api), witness: resolve(projectRoot, entries.witness) },
      interrupts: watchInterrupts(),
      say: text => process.stdout.write(text),
    })
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error)
    process.stderr.write(error instanceof PlainError ? `${message}\n` : `could not start: ${message}\n`)
    process.exitCode = 1
  }
}

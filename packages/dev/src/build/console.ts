import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

const consoleApp = fileURLToPath(new URL('../../../../apps/console', import.meta.url))

/** The line of a failed program's output that says why. */
const findReason = (output: string): string =>
  output.split('\n').find(line => /^\w*Error\b/.test(line)) ?? output.trim().split('\n').at(-1) ?? ''

/**
 * Builds the operator's console into `folder`. It never copies an earlier build, which can be of another version. The error
 * is one line.
 */
export const buildConsole = async (folder: string, app: string = consoleApp): Promise<void> => {
  await promisify(execFile)(process.execPath, [join(app, 'scripts/main.ts'), folder]).catch(
    ({ stderr, message }: { stderr?: string; message: string }) => {
      const reason = findReason(stderr || message).trim()
      throw new Error(
        `The console could not be built: ${reason}; install all packages (npx -y pnpm@12 install), or leave it out (build:without-console).`,
      )
    },
  )
}

import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { delimiter, join } from 'node:path'

const isInstalled = (program: string): boolean =>
  (process.env.PATH ?? '').split(delimiter).some(directory => existsSync(join(directory, program)))

/** Why the tests with Prometheus cannot run; undefined: they can. Debian's package has both programs. */
export const missingPrometheus = ['promtool', 'prometheus'].every(isInstalled)
  ? undefined
  : 'Prometheus is missing; apt-get install prometheus'

/** Runs promtool and returns its exit code and everything that it printed. */
export const runPromtool = (
  args: readonly string[],
  { input = '', directory }: { readonly input?: string; readonly directory?: string } = {},
): Promise<{ readonly code: number | null; readonly output: string }> =>
  new Promise(resolve => {
    const child = execFile('promtool', args, { cwd: directory }, (_, stdout, stderr) => {
      resolve({ code: child.exitCode, output: stdout + stderr })
    })
    child.stdin?.end(input)
  })

import { spawn } from 'node:child_process'
import { chmod, mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

export interface CommandResult {
  /** Null: it did not end in time and was killed. */
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
  /** The files that the command left in its temporary directory. */
  readonly left: readonly string[]
}

/** Shorter than the timeout of a test, so that the test reports the output of a command that hangs. */
const MAX_RUN_MS = 160_000

/** Runs a command until it exits. Sends one SIGINT when standard error matches `interruptAt`. */
export const runCommand = async (
  main: string,
  args: readonly string[],
  interruptAt?: RegExp,
): Promise<CommandResult> => {
  const folder = await mkdtemp(join(tmpdir(), 'command-test-'))
  await using cleanup = new AsyncDisposableStack()
  cleanup.defer(() => rm(folder, { recursive: true }))
  // For root, Postgres runs as another user, which must be able to search the directory.
  await chmod(folder, 0o755)
  const child = spawn(process.execPath, [main, ...args], {
    env: { ...process.env, TMPDIR: folder },
    stdio: ['ignore', 'pipe', 'pipe'],
    timeout: MAX_RUN_MS,
    killSignal: 'SIGKILL',
  })
  let [stdout, stderr] = ['', '']
  child.stdout.on('data', piece => {
    stdout += piece
  })
  let isInterrupted = false
  child.stderr.on('data', piece => {
    stderr += piece
    if (isInterrupted || !interruptAt?.test(stderr)) return
    // A second signal would end the process while it exits, when Node no longer calls its listeners.
    isInterrupted = true
    child.kill('SIGINT')
  })
  const code = await new Promise<number | null>(resolve => child.on('close', resolve))
  return { code, stdout, stderr, left: await readdir(folder) }
}

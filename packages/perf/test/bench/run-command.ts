import { spawn } from 'node:child_process'
import { chmod, mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

export interface Ran {
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
  /** What it has left behind in the folder for temporary ones, which was its own. */
  readonly left: readonly string[]
}

/** Runs a command to its end; with `interruptAt`, Ctrl-C when that is on standard error. */
export const runCommand = async (main: string, args: readonly string[], interruptAt?: RegExp): Promise<Ran> => {
  const folder = await mkdtemp(join(tmpdir(), 'command-test-'))
  await using cleanup = new AsyncDisposableStack()
  cleanup.defer(() => rm(folder, { recursive: true }))
  // The account that Postgres runs as when we are root passes through it.
  await chmod(folder, 0o755)
  const child = spawn(process.execPath, [main, ...args], {
    env: { ...process.env, TMPDIR: folder },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let [stdout, stderr] = ['', '']
  child.stdout.on('data', piece => {
    stdout += piece
  })
  child.stderr.on('data', piece => {
    stderr += piece
    if (interruptAt?.test(stderr)) child.kill('SIGINT')
  })
  const code = await new Promise<number | null>(resolve => child.on('close', resolve))
  return { code, stdout, stderr, left: await readdir(folder) }
}

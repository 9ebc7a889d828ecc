import { spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'

const folders = ['/usr/bin', '/usr/sbin', '/usr/local/bin', '/usr/local/sbin']

/** The path of an installed program, or undefined. Servers are often in directories that are not on the `PATH`. */
export const findProgram = (program: string): string | undefined =>
  folders.map(folder => join(folder, program)).find(existsSync)

/**
 * A shell that kills the server when its standard input closes, which also happens when this process dies, and then
 * removes a directory. The shell closes its own output, so that the output ends when the server exits. It merges stdout
 * and stderr, because some servers close stderr.
 */
const SUPERVISOR =
  'dir=$1; shift; "$@" 2>&1 & server=$!; exec >&- 2>&-; read -r _; kill -KILL $server; wait $server; [ -z "$dir" ] || rm -rf "$dir"'

export interface ServerCommand {
  readonly name: string
  /** Runs the server in the foreground. */
  readonly command: readonly string[]
  /** Working directory. */
  readonly folder: string
  /** The complete environment. Default: that of this process. */
  readonly env?: NodeJS.ProcessEnv
  /** Removed after the server has exited. */
  readonly removeOnExit?: string
}

/** A server exited before it was killed. The message has its output, which a crash can truncate. */
export class ServerExitedError extends Error {
  override readonly name = 'ServerExitedError'

  constructor(server: string, output: string) {
    super(`${server} exited:\n${output}`)
  }
}

export interface RunningServer {
  /** Rejects with `ServerExitedError` if the server exits before it is killed; never resolves. */
  readonly failed: Promise<never>
  readonly kill: () => Promise<void>
}

/** Starts a server in the foreground. It runs at most as long as this process. */
export const startServerProcess = ({
  name,
  command,
  folder,
  env,
  removeOnExit: leaves = '',
}: ServerCommand): RunningServer => {
  const child = spawn('/bin/sh', ['-c', SUPERVISOR, 'sh', leaves, ...command], { cwd: folder, env: env ?? process.env })
  let output = ''
  let isKilled = false
  const exited = new Promise<void>(resolve => child.once('exit', () => resolve()))
  child.stdin.on('error', () => {})
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    output += text
  })
  child.stderr.resume()
  const failed = new Promise<never>((_, reject) => {
    child.stdout.once('end', () => {
      if (!isKilled) reject(new ServerExitedError(name, output))
    })
  })
  // A caller that no longer awaits `failed` must not cause an unhandled rejection.
  failed.catch(() => {})
  const kill = async () => {
    isKilled = true
    child.stdin.end()
    await exited
  }
  return { failed, kill }
}

const UP_TIMEOUT_MS = 60_000
const POLL_INTERVAL_MS = 20

/** Polls until `isUp` returns true. Rejects if a server exits first, or after one minute. */
export const waitUntilUp = async (
  what: string,
  isUp: () => Promise<boolean>,
  servers: readonly RunningServer[],
): Promise<void> => {
  const end = performance.now() + UP_TIMEOUT_MS
  const failures = servers.map(({ failed }) => failed)
  while (!(await Promise.race([isUp(), ...failures]))) {
    if (performance.now() > end) throw new Error(`timed out after ${UP_TIMEOUT_MS} ms: ${what}`)
    await Promise.race([sleep(POLL_INTERVAL_MS), ...failures])
  }
}

/** Starts a server and waits until it is up. Returns a function that kills it. */
export const startServerAndWait = async (
  server: ServerCommand & { readonly isUp: () => Promise<boolean> },
): Promise<() => Promise<void>> => {
  const running = startServerProcess(server)
  await waitUntilUp(`${server.name} is up`, server.isUp, [running]).catch(async error => {
    await running.kill()
    throw error
  })
  return running.kill
}

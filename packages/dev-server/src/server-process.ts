import { spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'

const folders = ['/usr/bin', '/usr/sbin', '/usr/local/bin', '/usr/local/sbin']

/** Where a system's program is installed; undefined: it is not. Servers are often in folders that no `PATH` names. */
export const found = (program: string): string | undefined =>
  folders.map(folder => join(folder, program)).find(existsSync)

/**
 * Kills the server when standard input ends, which it also does when this process dies in whatever way; then removes what
 * only it wrote to. The shell gives up its own output, so that the end of the output is the end of the server; of both
 * outputs as one, since some servers close their standard error.
 */
const guard =
  'left=$1; shift; "$@" 2>&1 & server=$!; exec >&- 2>&-; read -r _; kill -KILL $server; wait $server; [ -z "$left" ] || rm -rf "$left"'

export interface ServerProcess {
  readonly name: string
  /** Runs it in the foreground. */
  readonly command: readonly string[]
  /** Where it works. */
  readonly folder: string
  /** The whole of it; that of this process if not given. */
  readonly env?: NodeJS.ProcessEnv
  /** Removed after it, however it ended. */
  readonly leaves?: string
}

/** A server ended before it was killed. The message is what it said until then: a crash can cut that short. */
export class ServerEnded extends Error {
  override readonly name = 'ServerEnded'

  constructor(server: string, said: string) {
    super(`${server} ended:\n${said}`)
  }
}

export interface RunningServer {
  /** Rejects with `ServerEnded` when it ends before it was killed; never resolves. */
  readonly failed: Promise<never>
  readonly kill: () => Promise<void>
}

/** A server that does not put itself in the background, for as long as this process lives. */
export const startServerProcess = ({ name, command, folder, env, leaves = '' }: ServerProcess): RunningServer => {
  const child = spawn('/bin/sh', ['-c', guard, 'sh', leaves, ...command], { cwd: folder, env: env ?? process.env })
  let said = ''
  let isKilled = false
  const exited = new Promise<void>(resolve => child.once('exit', () => resolve()))
  child.stdin.on('error', () => {})
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    said += text
  })
  child.stderr.resume()
  const failed = new Promise<never>((_, reject) => {
    child.stdout.once('end', () => {
      if (!isKilled) reject(new ServerEnded(name, said))
    })
  })
  // Whoever does not wait any more does not care.
  failed.catch(() => {})
  const kill = async () => {
    isKilled = true
    child.stdin.end()
    await exited
  }
  return { failed, kill }
}

const UP_WITHIN_MS = 60_000
const EVERY_MS = 20

/** Waits until it is so; an error when a server ends before, and when it is not so within a minute. */
export const untilUp = async (
  what: string,
  isSo: () => Promise<boolean>,
  servers: readonly RunningServer[],
): Promise<void> => {
  const end = performance.now() + UP_WITHIN_MS
  const failures = servers.map(({ failed }) => failed)
  while (!(await Promise.race([isSo(), ...failures]))) {
    if (performance.now() > end) throw new Error(`not within ${UP_WITHIN_MS} ms: ${what}`)
    await Promise.race([sleep(EVERY_MS), ...failures])
  }
}

/** Starts a server and waits until it is up; returns what kills it. */
export const startServerUp = async (
  server: ServerProcess & { readonly isUp: () => Promise<boolean> },
): Promise<() => Promise<void>> => {
  const running = startServerProcess(server)
  await untilUp(`${server.name} is up`, server.isUp, [running]).catch(async error => {
    await running.kill()
    throw error
  })
  return running.kill
}

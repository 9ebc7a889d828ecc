import { spawn } from 'node:child_process'

/**
 * Kills the server when standard input ends, which it also does when the tests die in whatever way; then removes what only
 * it wrote to. The shell gives up its own output, so that the end of the output is the end of the server; of both outputs
 * as one, since radosgw closes its standard error.
 */
const guard =
  'left=$1; shift; "$@" 2>&1 & server=$!; exec >&- 2>&-; read -r _; kill -KILL $server; wait $server; [ -z "$left" ] || rm -rf "$left"'

export interface ServerProcess {
  readonly name: string
  /** Runs it in the foreground. */
  readonly command: readonly string[]
  readonly env: NodeJS.ProcessEnv
  /** Removed after it, however it ended. */
  readonly leaves?: string
}

export interface RunningServer {
  /** Rejects with what it said when it ends before it was killed; never resolves. */
  readonly failed: Promise<never>
  readonly kill: () => Promise<void>
}

export const startServerProcess = ({ name, command, env, leaves = '' }: ServerProcess): RunningServer => {
  const child = spawn('/bin/sh', ['-c', guard, 'sh', leaves, ...command], { env })
  let said = ''
  let isKilled = false
  const hear = (text: string) => {
    said += text
  }
  const exited = new Promise<void>(resolve => child.once('exit', () => resolve()))
  child.stdin.on('error', () => {})
  child.stdout.setEncoding('utf8').on('data', hear)
  child.stderr.resume()
  const failed = new Promise<never>((_, reject) => {
    child.stdout.once('end', () => {
      if (!isKilled) reject(new Error(`${name} ended:\n${said}`))
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

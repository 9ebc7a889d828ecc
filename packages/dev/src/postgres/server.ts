import { spawn } from 'node:child_process'
import { closeSync, existsSync, openSync, statSync } from 'node:fs'
import { open } from 'node:fs/promises'
import { pollUntil } from '../poll.ts'
import type { Exit } from '../process.ts'
import type { Binaries } from './binaries.ts'
import { serverEnv } from './cluster.ts'
import { readPidFile } from './stale-server.ts'
import type { UserLaunch } from './unprivileged-user.ts'

export type StopMode = 'fast' | 'immediate'

export interface PostgresServer {
  readonly pid: number
  readonly exited: Promise<Exit>
  stop(mode?: StopMode): Promise<void>
}

export interface PostgresServerOptions {
  readonly cluster: string
  readonly log: string
  readonly port: number
  readonly fsync: boolean
  readonly binaries: Binaries
  readonly launch: UserLaunch
}

export type LaunchResult = { readonly server: PostgresServer } | { readonly failed: string }

/** Includes crash recovery. */
const READY_TIMEOUT_MS = 60_000
/** After this time, stop() sends the next, stronger signal. */
const STOP_SIGNAL_TIMEOUT_MS = 15_000

const stopSignals = { fast: ['SIGINT', 'SIGQUIT', 'SIGKILL'], immediate: ['SIGQUIT', 'SIGKILL'] } as const

/** Returns when the server accepts connections, or with the last lines of its log if it failed to start. */
export async function launchServer({
  cluster,
  log,
  port,
  fsync,
  binaries,
  launch,
}: PostgresServerOptions): Promise<LaunchResult> {
  const logStart = existsSync(log) ? statSync(log).size : 0
  const { file, args, options } = launch.command(binaries.postgres, ['-D', cluster, ...settings(port, fsync)])
  const output = openSync(log, 'a', 0o600)
  const stdio = ['ignore', output, output] as const
  // A separate process group: Ctrl-C in the terminal must not stop it before the API has drained.
  const child = spawn(file, args, { ...options, cwd: '/', env: serverEnv(), detached: true, stdio: [...stdio] })
  closeSync(output)

  let hasExited = false
  let spawnError = ''
  const stopWatchdog = child.pid === undefined ? () => {} : startWatchdog(child.pid)
  const exited = new Promise<Exit>(resolve => {
    const end = (exit: Exit) => {
      hasExited = true
      stopWatchdog()
      resolve(exit)
    }
    child.on('exit', (code, signal) => end({ code, signal }))
    child.on('error', error => {
      spawnError = String(error)
      end({ code: null, signal: null })
    })
  })

  const stop = async (mode: StopMode = 'fast') => {
    for (const signal of stopSignals[mode]) {
      if (hasExited) return
      child.kill(signal)
      child.kill('SIGCONT') // a stopped process does not handle signals
      if (await pollUntil(() => hasExited, { intervalMs: 5, timeoutMs: STOP_SIGNAL_TIMEOUT_MS })) return
    }
  }

  const { pid } = child
  const isReady = async () => {
    const found = await readPidFile(cluster)
    return hasExited || (found?.pid === pid && found?.status === 'ready')
  }
  await pollUntil(isReady, { intervalMs: 10, timeoutMs: READY_TIMEOUT_MS })
  if (pid !== undefined && !hasExited && (await isReady())) return { server: { pid, exited, stop } }
  await stop('immediate')
  return { failed: spawnError || (await lastLines(log, 10, logStart)) }
}

function settings(port: number, fsync: boolean): string[] {
  const values = {
    listen_addresses: '127.0.0.1',
    port: String(port),
    unix_socket_directories: '',
    max_connections: '300', // ten API processes with default pools
    timezone: 'UTC',
    log_timezone: 'UTC',
    // A commit is still written before the response, because synchronous_commit stays on.
    ...(fsync ? {} : { fsync: 'off', full_page_writes: 'off' }),
  }
  return Object.entries(values).flatMap(([name, value]) => ['-c', `${name}=${value}`])
}

/**
 * A shell that outlives this process, however it exits (package managers kill process groups), and then stops the server:
 * SIGTERM lets the API drain, because the server waits for its clients; SIGINT follows after 20 s.
 */
const WATCHDOG_SCRIPT = `
  cat >/dev/null
  kill -TERM "$1" || exit
  for _ in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
    sleep 1
    kill -0 "$1" || exit
  done
  kill -INT "$1"`

/** Returns a function that stops the watchdog. Call it when the server exits, because its process id can be reused. */
function startWatchdog(serverPid: number): () => void {
  // The pipe closes when this process exits; nothing is written to it.
  const watchdog = spawn('/bin/sh', ['-c', WATCHDOG_SCRIPT, 'postgres-watchdog', String(serverPid)], {
    cwd: '/',
    detached: true,
    stdio: ['pipe', 'ignore', 'ignore'],
  })
  watchdog.on('error', () => {})
  watchdog.unref()
  return () => watchdog.kill('SIGKILL')
}

/** lastLines() reads at most this many bytes. */
const MAX_TAIL_BYTES = 16_384

export async function lastLines(path: string, lines: number, fromByte = 0): Promise<string> {
  const file = await open(path).catch(() => undefined)
  if (file === undefined) return ''
  try {
    const { size } = await file.stat()
    const start = Math.max(fromByte, size - MAX_TAIL_BYTES, 0)
    const { buffer, bytesRead } = await file.read(Buffer.alloc(Math.max(size - start, 0)), { position: start })
    return buffer.toString('utf8', 0, bytesRead).trimEnd().split('\n').slice(-lines).join('\n')
  } finally {
    await file.close()
  }
}

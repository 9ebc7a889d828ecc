import { spawn } from 'node:child_process'
import { closeSync, existsSync, openSync, statSync } from 'node:fs'
import { until } from '../poll.ts'
import type { Exit } from '../process.ts'
import { lastLines } from '../tail.ts'
import type { Binaries } from './binaries.ts'
import { serverEnv } from './cluster.ts'
import { readPidFile } from './stale-server.ts'
import type { Launch } from './unprivileged-user.ts'
import { watchOver } from './watchdog.ts'

export type StopMode = 'fast' | 'immediate'

export interface Server {
  readonly pid: number
  readonly exited: Promise<Exit>
  stop(mode?: StopMode): Promise<void>
}

export interface ServerOptions {
  readonly cluster: string
  readonly log: string
  readonly port: number
  readonly fsync: boolean
  readonly binaries: Binaries
  readonly launch: Launch
}

export type Launched = { readonly server: Server } | { readonly failed: string }

/** Recovery after a crash counts too. */
const READY_WITHIN_MS = 60_000
/** Then the next, harder signal. */
const STOP_WITHIN_MS = 15_000

const stopSignals = { fast: ['SIGINT', 'SIGQUIT', 'SIGKILL'], immediate: ['SIGQUIT', 'SIGKILL'] } as const

/** Returns when the server accepts connections, or with the last lines of its log when it will not. */
export async function launchServer({ cluster, log, port, fsync, binaries, launch }: ServerOptions): Promise<Launched> {
  const logStart = existsSync(log) ? statSync(log).size : 0
  const { file, args, options } = launch.command(binaries.postgres, ['-D', cluster, ...settings(port, fsync)])
  const output = openSync(log, 'a', 0o600)
  const stdio = ['ignore', output, output] as const
  // Its own process group: a terminal's Ctrl-C must not stop it before the API has drained.
  const child = spawn(file, args, { ...options, cwd: '/', env: serverEnv(), detached: true, stdio: [...stdio] })
  closeSync(output)

  let isOver = false
  let spawnFault = ''
  const callOff = child.pid === undefined ? () => {} : watchOver(child.pid)
  const exited = new Promise<Exit>(resolve => {
    const end = (exit: Exit) => {
      isOver = true
      callOff()
      resolve(exit)
    }
    child.on('exit', (code, signal) => end({ code, signal }))
    child.on('error', error => {
      spawnFault = String(error)
      end({ code: null, signal: null })
    })
  })

  const stop = async (mode: StopMode = 'fast') => {
    for (const signal of stopSignals[mode]) {
      if (isOver) return
      child.kill(signal)
      child.kill('SIGCONT') // a frozen one would not see the signal
      if (await until(() => isOver, { everyMs: 5, withinMs: STOP_WITHIN_MS })) return
    }
  }

  const { pid } = child
  const isReady = async () => {
    const found = await readPidFile(cluster)
    return isOver || (found?.pid === pid && found?.status === 'ready')
  }
  await until(isReady, { everyMs: 10, withinMs: READY_WITHIN_MS })
  if (pid !== undefined && !isOver && (await isReady())) return { server: { pid, exited, stop } }
  await stop('immediate')
  return { failed: spawnFault || (await lastLines(log, 10, logStart)) }
}

function settings(port: number, fsync: boolean): string[] {
  const values = {
    listen_addresses: '127.0.0.1',
    port: String(port),
    unix_socket_directories: '',
    max_connections: '200', // ten API processes with their default pools, and some
    timezone: 'UTC',
    log_timezone: 'UTC',
    // Commits are still written before they are answered (synchronous_commit stays on).
    ...(fsync ? {} : { fsync: 'off', full_page_writes: 'off' }),
  }
  return Object.entries(values).flatMap(([name, value]) => ['-c', `${name}=${value}`])
}

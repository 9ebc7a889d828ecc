import { fork } from 'node:child_process'
import { ELECT_EXIT, toSignalExit } from '../exit-codes.ts'
import { addMs, type Moment, readClocks, type StopTimes } from './deadline.ts'
import { type KeeperReport, type KeeperRequest, signalGroup } from './keeper.ts'

/** The argument that makes the entry of poolctl run the keeper instead. */
export const KEEPER_ARGUMENT = '__keep'

export interface LeasedCommandOptions extends StopTimes {
  /** The entry file of poolctl. */
  readonly entry: string
  readonly command: string
  readonly args: readonly string[]
  readonly env: NodeJS.ProcessEnv
  /** The end of the lease. */
  readonly end: Moment
}

export type CommandEnd =
  | { readonly kind: 'exited'; readonly exitCode: number; readonly isLeaseOver: boolean }
  | { readonly kind: 'not-started'; readonly exitCode: number; readonly reason: string }

export interface LeasedCommand {
  readonly ended: Promise<CommandEnd>
  /** The lease was renewed until `end`. */
  extend(end: Moment): void
  /** Sends SIGTERM, and SIGKILL after the grace time, or earlier if the lease ends before. */
  stop(): void
}

const toExitCode = (code: number | null, signal: NodeJS.Signals | null): number =>
  signal === null ? (code ?? 0) : toSignalExit(signal)

/** Starts a command that does not outlive its lease. */
export const startLeasedCommand = (options: LeasedCommandOptions): LeasedCommand => {
  const { entry, command, args, env, graceMs, marginMs } = options
  let end = options.end
  let pid: number | undefined
  let backstop: NodeJS.Timeout | undefined
  // A session of its own: Ctrl-C reaches poolctl only, which stops the command in its order.
  const keeper = fork(entry, [KEEPER_ARGUMENT], {
    env,
    detached: true,
    stdio: ['inherit', 'inherit', 'inherit', 'ipc'],
  })
  const send = (request: KeeperRequest) => {
    if (keeper.connected) keeper.send(request, () => {})
  }
  /** If the keeper itself does not run, poolctl ends the command. */
  const armBackstop = () => {
    clearTimeout(backstop)
    backstop = setTimeout(
      () => {
        if (pid !== undefined) signalGroup(pid, 'SIGKILL')
        keeper.kill('SIGKILL')
      },
      Math.max(0, end.monotonicMs - readClocks().monotonicMs - marginMs / 2),
    )
  }
  const ended = new Promise<CommandEnd>(resolve => {
    let result: CommandEnd | undefined
    keeper.on('message', (report: KeeperReport) => {
      if (report.type === 'started') {
        pid = report.pid
        armBackstop()
      } else if (report.type === 'exited') {
        const { code, signal, isLeaseOver } = report
        result = { kind: 'exited', exitCode: toExitCode(code, signal), isLeaseOver }
      } else {
        const exitCode = report.code === 'ENOENT' ? ELECT_EXIT.notFound : ELECT_EXIT.cannotExecute
        result = { kind: 'not-started', exitCode, reason: report.code }
      }
    })
    keeper.once('error', () => {
      result ??= {
        kind: 'not-started',
        exitCode: ELECT_EXIT.failed,
        reason: 'the process that supervises it cannot be started',
      }
    })
    keeper.once('close', () => {
      clearTimeout(backstop)
      if (result === undefined && pid !== undefined) signalGroup(pid, 'SIGKILL')
      resolve(result ?? { kind: 'exited', exitCode: toSignalExit('SIGKILL'), isLeaseOver: true })
    })
  })
  send({ type: 'start', command, args, end, graceMs, marginMs })
  return {
    ended,
    extend(later) {
      end = later
      if (pid !== undefined) armBackstop()
      send({ type: 'extend', end: later })
    },
    stop() {
      send({ type: 'stop' })
      const latest = addMs(readClocks(), graceMs + marginMs)
      if (latest.monotonicMs < end.monotonicMs) {
        end = latest
        if (pid !== undefined) armBackstop()
      }
    },
  }
}

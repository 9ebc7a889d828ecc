import { type ChildProcess, spawn } from 'node:child_process'
import { decideStop, type Moment, readClocks, type StopTimes, toMsLeft, toMsUntilNextStep } from './deadline.ts'

// The process that runs the command of `leases elect`. It ends the command before the lease does, also if poolctl is
// stopped, frozen or killed: poolctl only sends it the end of the lease after each renewal.

export interface KeeperStart extends StopTimes {
  readonly type: 'start'
  readonly command: string
  readonly args: readonly string[]
  /** The end of the lease. */
  readonly end: Moment
}

export type KeeperRequest = KeeperStart | { readonly type: 'extend'; readonly end: Moment } | { readonly type: 'stop' }

export type KeeperReport =
  | { readonly type: 'started'; readonly pid: number }
  | { readonly type: 'not-started'; readonly code: string }
  | {
      readonly type: 'exited'
      readonly code: number | null
      readonly signal: NodeJS.Signals | null
      /** The command was stopped because the lease was about to end, not because poolctl requested it. */
      readonly isLeaseOver: boolean
    }

/** The wall clock can jump, after a suspension for example, so timers alone do not suffice. */
const CHECK_MS = 200

/** Sends a signal to the processes of the command's group. */
export const signalGroup = (pid: number, signal: NodeJS.Signals): void => {
  try {
    process.kill(-pid, signal)
  } catch {
    // No process of the group is left.
  }
}

const keep = (start: KeeperStart, report: (message: KeeperReport) => void) => {
  let end = start.end
  let stopAt: Moment | undefined
  let timer: NodeJS.Timeout | undefined
  let isTerminated = false
  let hasEnded = false
  let isLeaseOver = false
  const child: ChildProcess = spawn(start.command, [...start.args], {
    stdio: ['inherit', 'inherit', 'inherit'],
    detached: true,
  })

  const check = () => {
    clearTimeout(timer)
    const { pid } = child
    if (pid === undefined || hasEnded) return
    const now = readClocks()
    const leaseLeft = toMsLeft(end, now)
    // A requested stop has its own end, which is never after that of the lease.
    const msLeft = stopAt === undefined ? leaseLeft : Math.min(leaseLeft, toMsLeft(stopAt, now))
    const step = decideStop(msLeft, start)
    if (step !== 'run' && !isTerminated) {
      isTerminated = true
      isLeaseOver = stopAt === undefined
      signalGroup(pid, 'SIGTERM')
      // A stopped process handles SIGTERM only after it continues.
      signalGroup(pid, 'SIGCONT')
    }
    if (step === 'kill') signalGroup(pid, 'SIGKILL')
    timer = setTimeout(check, Math.max(1, Math.min(CHECK_MS, toMsUntilNextStep(msLeft, start))))
  }

  child.once('error', error => {
    hasEnded = true
    clearTimeout(timer)
    report({ type: 'not-started', code: 'code' in error ? String(error.code) : 'unknown' })
  })
  child.once('spawn', () => {
    report({ type: 'started', pid: child.pid ?? 0 })
    check()
  })
  child.once('exit', (code, signal) => {
    hasEnded = true
    clearTimeout(timer)
    // What the command left running in its group must not outlive the lease either.
    if (child.pid !== undefined) signalGroup(child.pid, 'SIGKILL')
    report({ type: 'exited', code, signal, isLeaseOver })
  })
  return {
    extend(later: Moment) {
      // A command that got SIGTERM has no further use for a lease.
      if (!isTerminated) end = later
      check()
    },
    stop() {
      const now = readClocks()
      const ms = start.graceMs + start.marginMs
      stopAt ??= { monotonicMs: now.monotonicMs + ms, wallMs: now.wallMs + ms }
      check()
    },
  }
}

/** Runs in a process of its own, with an IPC channel to poolctl. */
export const runKeeper = (): void => {
  let running: ReturnType<typeof keep> | undefined
  const report = (message: KeeperReport) => {
    if (process.connected) process.send?.(message)
    if (message.type !== 'started') {
      if (process.connected) process.disconnect()
      // Nothing else keeps this process alive.
      process.exitCode = 0
    }
  }
  process.on('message', (message: KeeperRequest) => {
    if (message.type === 'start') running = keep(message, report)
    else if (message.type === 'extend') running?.extend(message.end)
    else running?.stop()
  })
  // poolctl is gone: the lease is not renewed any more.
  process.on('disconnect', () => running?.stop())
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => running?.stop())
}

/** A moment on two clocks. Both are shared by the processes of a machine: CLOCK_MONOTONIC and the wall clock. */
export interface Moment {
  /** Milliseconds. It does not advance while the machine is suspended. */
  readonly monotonicMs: number
  /** Milliseconds since the epoch. It advances during a suspension, and it can be set. */
  readonly wallMs: number
}

export const readClocks = (): Moment => ({
  monotonicMs: Number(process.hrtime.bigint() / 1_000n) / 1_000,
  wallMs: Date.now(),
})

export const addMs = ({ monotonicMs, wallMs }: Moment, ms: number): Moment => ({
  monotonicMs: monotonicMs + ms,
  wallMs: wallMs + ms,
})

/** Milliseconds until `end`, by the clock that advanced more. */
export const toMsLeft = (end: Moment, now: Moment): number =>
  Math.min(end.monotonicMs - now.monotonicMs, end.wallMs - now.wallMs)

/** How long before the end of the lease a command is stopped. */
export interface StopTimes {
  /** From SIGTERM to SIGKILL. */
  readonly graceMs: number
  /** From SIGKILL to the end of the lease, for the delivery of the signal. */
  readonly marginMs: number
}

export type StopStep = 'run' | 'terminate' | 'kill'

/** What to do with a command that runs under a lease. */
export const decideStop = (msLeft: number, { graceMs, marginMs }: StopTimes): StopStep => {
  if (msLeft <= marginMs) return 'kill'
  return msLeft <= marginMs + graceMs ? 'terminate' : 'run'
}

/** Milliseconds until the decision changes. */
export const toMsUntilNextStep = (msLeft: number, times: StopTimes): number => {
  const step = decideStop(msLeft, times)
  if (step === 'kill') return 0
  return step === 'terminate' ? msLeft - times.marginMs : msLeft - times.marginMs - times.graceMs
}

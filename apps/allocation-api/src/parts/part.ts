import { setTimeout } from 'node:timers/promises'
import type { ErrorEvent } from '../observability/domain/observer.ts'

/** What a part of the service does again and again while it runs. */
export interface Job {
  /** The message of the log line when it fails. */
  readonly failure: ErrorEvent
  readonly intervalMs: number
  run(signal: AbortSignal): Promise<void>
}

/** A part of the service. It brings its own dependencies of routes (`routes`) and sources of gauges (`gauges`). */
export interface Part {
  readonly jobs?: readonly Job[]
  /** Ends its work: starts nothing more, and waits for what is in progress. What it has opened stays usable. */
  stop?(): Promise<void>
  /** Closes what it has opened, after everything that uses it. */
  close?(): Promise<void>
}

/** Monotonic clock, in milliseconds. */
export const now = (): number => performance.now()

/** Resolves after `ms`, or when the signal aborts. */
export const sleep = (ms: number, signal: AbortSignal): Promise<void> =>
  setTimeout(ms, undefined, { signal }).catch(() => {})

/** Client addresses that a limit remembers. */
export const MAX_LIMITED_CLIENTS = 10_000

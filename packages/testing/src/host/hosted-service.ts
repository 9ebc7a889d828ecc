import type { ChildProcess } from 'node:child_process'
import type { ServiceAddress } from '../protocol.ts'
import type { Log } from './log.ts'

export interface HostContext {
  /** For all files of the service. It is removed when the host ends. */
  readonly folder: string
  readonly log: Log
  /** The child processes that run, by pid. */
  readonly children: ReadonlyMap<number, ChildProcess>
}

/** A running service with what it needs. */
export interface HostedService {
  /** The ports of its listeners. */
  readonly ports: readonly number[]
  /** What the test gets in addition to the URLs. */
  readonly address: Omit<ServiceAddress, 'url' | 'operatorUrl'>
  /** Sets the clock by which it decides to this many milliseconds ahead of the machine's. */
  readonly setClock: (aheadMs: number) => Promise<void>
  /** Whether the clock may go back. */
  readonly canSetBack: boolean
  /** Kills it and starts it again. Resolves with its ports when it serves requests. */
  readonly kill: () => Promise<readonly number[]>
  /** Ends all of its processes. */
  readonly stop: () => Promise<void>
}

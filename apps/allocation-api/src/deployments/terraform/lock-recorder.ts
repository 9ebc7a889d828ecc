import { createLineSplitter } from '../../lib/line-splitter.ts'
import type { StateLock } from '../domain/types.ts'
import { isProofOfLock } from './domain/lock.ts'
import { identifyProcessGroup, type ProcessGroupIdentity } from './process-group.ts'

export interface LockRecorderOptions {
  /** The ID of the lock that the state has now; null if it has none or its backend does not show it. */
  readonly findLockId: () => Promise<string | null>
  /** Lifts this lock, whose process group has ended. Returns whether it is known to be gone. */
  readonly lift: (id: string) => Promise<boolean>
  readonly onLock: (lock: StateLock | null) => Promise<void>
}

/** Longer lines are no proof of a lock. In characters. */
const MAX_LINE = 256 * 1_024

/**
 * Reports the lock that a command takes. Terraform does not show the ID of its own lock. While the command holds the lock,
 * no other lock of this state exists, so the ID that the state shows is its own. A command that is killed before this was
 * found out leaves a lock that is not recorded.
 */
export class LockRecorder {
  readonly #options: LockRecorderOptions
  readonly #lines = createLineSplitter(MAX_LINE, line => this.#onLine(line))
  #holder: ProcessGroupIdentity | undefined
  #hasExited = false
  #recorded: Promise<string | null> | undefined

  constructor(options: LockRecorderOptions) {
    this.#options = options
  }

  onStarted(leader: number): void {
    this.#holder = identifyProcessGroup(leader)
  }

  /** Standard output of the command. */
  write(chunk: string): void {
    if (!this.#recorded) this.#lines.push(chunk)
  }

  /** Call after the exit. Reports the end of the lock, if it was recorded and is known to be gone. */
  async finish(hasReleased: boolean): Promise<void> {
    this.#hasExited = true
    const id = await this.#recorded
    if (id && (hasReleased || (await this.#options.lift(id)))) await this.#report(null)
  }

  #onLine(line: string): void {
    if (!this.#recorded && isProofOfLock(line)) this.#recorded = this.#record()
  }

  async #record(): Promise<string | null> {
    const id = await this.#options.findLockId().catch(() => null)
    // After the exit, another process may have taken the lock.
    if (id === null || this.#hasExited || !this.#holder) return null
    await this.#report({ id, ...this.#holder })
    return id
  }

  /** A lock that could not be recorded is only harder to lift. */
  #report(lock: StateLock | null): Promise<void> {
    return this.#options.onLock(lock).catch(() => {})
  }
}

import type { Deployment } from '@pool/contract'
import type { Rejection } from '../allocation/domain/types.ts'
import { sanitizeText } from '../lib/text.ts'
import { isFinished } from './domain/lifecycle.ts'
import type { DeploymentLogLine, RunLease, StoredLogLine } from './domain/types.ts'
import type { DeploymentRepository } from './repository.ts'
import type { RunRepository } from './run-repository.ts'

export interface LogWriterOptions {
  readonly repository: Pick<RunRepository, 'appendLog'>
  readonly lease: RunLease
  /** Lines that earlier runs stored. */
  readonly lineCount: number
  readonly onStored: () => void
}

/** Lines buffered while the database is unavailable, more than an apply writes. Further lines are dropped. */
const MAX_BUFFERED_LINES = 20_000
/** Lines per statement. */
const MAX_BATCH = 500

/** Stores the log of a run in order. Lines that arrive during a write are stored by the next write. */
export class LogWriter {
  readonly #options: LogWriterOptions
  readonly #buffer: (DeploymentLogLine & { readonly at: string })[] = []
  #writing: Promise<void> | null = null
  #stored: number
  /** Size of the batch in flight. If its outcome is unknown, the same batch is written again, so no line is doubled. */
  #batchSize = 0

  constructor(options: LogWriterOptions) {
    this.#options = options
    this.#stored = options.lineCount
  }

  log(line: DeploymentLogLine): void {
    const message = sanitizeText(line.message)
    const at = new Date().toISOString()
    if (this.#buffer.length < MAX_BUFFERED_LINES) this.#buffer.push({ ...line, message, at })
    // The lines stay buffered: the next line, or a flush, tries again.
    void this.#write().catch(() => {})
  }

  /** Resolves when all lines are stored; rejects if the database does not answer. */
  async flush(): Promise<void> {
    await (this.#writing ?? Promise.resolve()).catch(() => {})
    await this.#write()
  }

  #write(): Promise<void> {
    this.#writing ??= this.#writeBatches().finally(() => {
      this.#writing = null
    })
    return this.#writing
  }

  async #writeBatches(): Promise<void> {
    const { repository, lease, onStored } = this.#options
    while (this.#buffer.length > 0) {
      this.#batchSize ||= Math.min(this.#buffer.length, MAX_BATCH)
      await repository.appendLog(lease, this.#stored, this.#buffer.slice(0, this.#batchSize))
      this.#buffer.splice(0, this.#batchSize)
      this.#stored += this.#batchSize
      this.#batchSize = 0
      onStored()
    }
  }
}

type Waiter = (isNotified: boolean) => void

/** Wakes the readers of this process that wait for a change of a deployment. Other processes are not notified. */
export class Notifier {
  readonly #waiters = new Map<string, Set<Waiter>>()

  notify(id: string): void {
    for (const waiter of this.#waiters.get(id) ?? []) waiter(true)
  }

  /**
   * True when notified, false after `ms` or when the signal aborts. To miss no change, call it before reading the
   * deployment and await it afterwards.
   */
  wait(id: string, ms: number, signal: AbortSignal): Promise<boolean> {
    if (signal.aborted) return Promise.resolve(false)
    const { promise, resolve } = Promise.withResolvers<boolean>()
    const waiters = this.#waiters.get(id) ?? new Set()
    const end: Waiter = isNotified => {
      clearTimeout(timer)
      signal.removeEventListener('abort', abort)
      waiters.delete(end)
      if (waiters.size === 0 && this.#waiters.get(id) === waiters) this.#waiters.delete(id)
      resolve(isNotified)
    }
    const abort = () => end(false)
    const timer = setTimeout(abort, ms)
    signal.addEventListener('abort', abort, { once: true })
    this.#waiters.set(id, waiters.add(end))
    return promise
  }
}

export interface TailOptions {
  readonly repository: Pick<DeploymentRepository, 'find' | 'readLog'>
  readonly notifier: Pick<Notifier, 'wait'>
  /** Maximum delay of a line that another replica wrote, as its writes notify no reader here. Milliseconds. */
  readonly pollMs: number
  /** Maximum silence of a stream, so that no proxy closes it as dead. Milliseconds. */
  readonly idleMs: number
  /** Monotonic clock, in milliseconds. */
  readonly now: () => number
}

export type TailEvent = readonly StoredLogLine[] | 'idle' | { readonly kind: 'done'; readonly deployment: Deployment }

export type TailOutcome =
  | { readonly kind: 'following'; readonly events: AsyncIterable<TailEvent> }
  | Rejection<'not-found'>

/** Lines per statement; a page uses little memory. */
const PAGE_SIZE = 200

async function* tail(
  { repository, notifier, pollMs, idleMs, now }: TailOptions,
  id: string,
  start: number,
  signal: AbortSignal,
): AsyncGenerator<TailEvent, void, void> {
  let after = start
  let lastEventAt = now()
  while (!signal.aborted) {
    // Before the read, or a notification during the read would be missed.
    const notified = notifier.wait(id, Math.min(pollMs, lastEventAt + idleMs - now()), signal)
    // The deployment before its lines: once it is finished, its last lines are stored.
    const deployment = await repository.find(id)
    if (deployment === null) return
    for (let hasMore = true; hasMore && !signal.aborted; ) {
      const lines = await repository.readLog(id, after, PAGE_SIZE)
      hasMore = lines.length === PAGE_SIZE
      const last = lines.at(-1)
      if (last === undefined || signal.aborted) break
      after = last.seq
      yield lines
      lastEventAt = now()
    }
    if (signal.aborted) return
    if (isFinished(deployment.status)) {
      yield { kind: 'done', deployment }
      return
    }
    await notified
    if (signal.aborted || now() - lastEventAt < idleMs) continue
    yield 'idle'
    lastEventAt = now()
  }
}

/**
 * The log of a deployment after line `after`: stored lines, then new lines, then `done`. Events are read at the pace of
 * the consumer, and no connection is held between reads. They end without `done` when the signal aborts or the
 * deployment is deleted.
 */
export const tailLog = async (
  options: TailOptions,
  id: string,
  after: number,
  signal: AbortSignal,
): Promise<TailOutcome> =>
  (await options.repository.find(id))
    ? { kind: 'following', events: tail(options, id, after, signal) }
    : { kind: 'not-found' }

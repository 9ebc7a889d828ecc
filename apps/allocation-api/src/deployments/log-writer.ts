import { sanitizeText } from '../lib/sanitize-text.ts'
import type { DeploymentLogLine, RunLease } from './domain/types.ts'
import type { DeploymentRepository } from './repository.ts'

export interface LogWriterOptions {
  readonly repository: Pick<DeploymentRepository, 'appendLog'>
  readonly lease: RunLease
  /** Lines that earlier runs stored. */
  readonly lineCount: number
  readonly clock: () => Date
  readonly onStored: () => void
}

/** Lines buffered while the database is unavailable, more than an apply writes. Further lines are dropped. */
const MAX_BUFFERED_LINES = 20_000
/** Lines per statement. */
const MAX_BATCH = 500

/** Stores the log of a run in order. Lines that arrive during a write go out together in the next one. */
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
    const at = this.#options.clock().toISOString()
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

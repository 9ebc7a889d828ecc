import { sanitizeText } from '../lib/sanitize-text.ts'
import type { Job, Line } from './domain/types.ts'
import type { LineStore } from './log-repository.ts'

export interface LogWriterDependencies {
  readonly lines: Pick<LineStore, 'append'>
  readonly run: Pick<Job, 'id' | 'generation' | 'lineCount'>
  readonly now: () => Date
  /** Told when lines were stored. */
  readonly onStored: () => void
}

/** Lines that wait for a database that is away. Above what a making tells at the most; later ones are not kept. */
const MOST_WAITING = 20_000
/** One statement's worth. */
const BATCH = 500

/**
 * Stores what a run tells, in order, while the run goes on: all lines that come during one write go out in the next.
 */
export const createLogWriter = ({ lines, run, now, onStored }: LogWriterDependencies) => {
  const waiting: (Line & { readonly at: string })[] = []
  let writing: Promise<void> | null = null
  let stored = run.lineCount
  /** Of the batch whose writing has begun: should that be of unknown outcome, the very same one is written again. */
  let begun = 0

  const flush = async (): Promise<void> => {
    while (waiting.length > 0) {
      begun ||= Math.min(waiting.length, BATCH)
      await lines.append(run, stored, waiting.slice(0, begun))
      waiting.splice(0, begun)
      stored += begun
      begun = 0
      onStored()
    }
  }
  const write = (): Promise<void> => {
    writing ??= flush().finally(() => {
      writing = null
    })
    return writing
  }

  return {
    tell(line: Line): void {
      const message = sanitizeText(line.message)
      if (waiting.length < MOST_WAITING) waiting.push({ ...line, message, at: now().toISOString() })
      // A failure is not forgotten: the lines stay, and the next line or `told` tries again.
      void write().catch(() => {})
    },
    /** Resolves when everything is stored; rejects when the database does not answer. */
    async told(): Promise<void> {
      await (writing ?? Promise.resolve()).catch(() => {})
      await write()
    },
  }
}

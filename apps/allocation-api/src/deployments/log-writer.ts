import type { Line, Run } from './deployment.ts'
import type { LineStore } from './line-store.ts'

export interface LogWriterDependencies {
  readonly lines: Pick<LineStore, 'append'>
  readonly run: Run
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

  const flush = async (): Promise<void> => {
    while (waiting.length > 0) {
      const batch = waiting.slice(0, BATCH)
      await lines.append(run, batch)
      waiting.splice(0, batch.length)
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
      if (waiting.length < MOST_WAITING) waiting.push({ ...line, at: now().toISOString() })
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

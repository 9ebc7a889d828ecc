import type { Deployment } from '@pool/contract'
import type { Rejection } from '../allocation/domain/types.ts'
import type { StoredLine } from './domain/types.ts'
import type { News } from './notifier.ts'

export interface FollowDependencies {
  readonly read: (id: string) => Promise<Deployment | null>
  /** Up to `limit` lines after `after`, in order. */
  readonly readLines: (id: string, after: number, limit: number) => Promise<readonly StoredLine[]>
  readonly news: Pick<News, 'changed'>
  /** How late a line may be that another replica has written: it wakes nobody here. */
  readonly pollMs: number
  /** How long a stream is silent at the most, so that nobody between takes it for dead. */
  readonly idleMs: number
}

export type Part = readonly StoredLine[] | 'idle' | { readonly kind: 'done'; readonly deployment: Deployment }

export type FollowOutcome = { readonly kind: 'following'; readonly parts: AsyncIterable<Part> } | Rejection<'not-found'>

/** Lines a statement: few enough to be nothing in memory. */
const PAGE = 200

/**
 * The log of a deployment after line `after`: what there is, then what comes, `done` at the end. The parts are read at
 * the pace of whoever takes them, and no connection is held between. They end without `done` when the signal aborts
 * and when the deployment is removed.
 */
export const follow = ({ read, readLines, news, pollMs, idleMs }: FollowDependencies) => {
  async function* partsOf(id: string, start: number, signal: AbortSignal): AsyncGenerator<Part, void, void> {
    let after = start
    let silentMs = 0
    while (!signal.aborted) {
      const waitMs = Math.min(pollMs, idleMs - silentMs)
      // Before the reading, or news that come during it would be slept through.
      const changed = news.changed(id, waitMs, signal)
      // The deployment before its lines: when it is over, the last of them are there.
      const deployment = await read(id)
      if (deployment === null) return
      for (let isMore = true; isMore && !signal.aborted; ) {
        const lines = await readLines(id, after, PAGE)
        isMore = lines.length === PAGE
        const last = lines.at(-1)
        if (last === undefined || signal.aborted) break
        after = last.seq
        silentMs = 0
        yield lines
      }
      if (signal.aborted) return
      if (deployment.status === 'ready' || deployment.status === 'failed') {
        yield { kind: 'done', deployment }
        return
      }
      if (!(await changed)) silentMs += waitMs
      if (silentMs < idleMs || signal.aborted) continue
      silentMs = 0
      yield 'idle'
    }
  }
  return async (id: string, after: number, signal: AbortSignal): Promise<FollowOutcome> =>
    (await read(id)) ? { kind: 'following', parts: partsOf(id, after, signal) } : { kind: 'not-found' }
}

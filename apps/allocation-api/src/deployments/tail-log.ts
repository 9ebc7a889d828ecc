import type { Deployment } from '@pool/contract'
import type { Rejection } from '../allocation/domain/types.ts'
import type { StoredLogLine } from './domain/types.ts'
import type { Notifier } from './notifier.ts'
import type { DeploymentRepository } from './repository.ts'

export interface TailOptions {
  readonly repository: Pick<DeploymentRepository, 'find' | 'readLog'>
  readonly notifier: Pick<Notifier, 'wait'>
  /** Maximum delay of a line that another replica wrote, as its writes notify no reader here. Milliseconds. */
  readonly pollMs: number
  /** Maximum silence of a stream, so that no proxy closes it as dead. Milliseconds. */
  readonly idleMs: number
}

export type TailEvent = readonly StoredLogLine[] | 'idle' | { readonly kind: 'done'; readonly deployment: Deployment }

export type TailOutcome =
  | { readonly kind: 'following'; readonly events: AsyncIterable<TailEvent> }
  | Rejection<'not-found'>

/** Lines per statement; a page uses little memory. */
const PAGE_SIZE = 200

async function* tail(
  { repository, notifier, pollMs, idleMs }: TailOptions,
  id: string,
  start: number,
  signal: AbortSignal,
): AsyncGenerator<TailEvent, void, void> {
  let after = start
  let silentMs = 0
  while (!signal.aborted) {
    const waitMs = Math.min(pollMs, idleMs - silentMs)
    // Before the read, or a notification during the read would be missed.
    const notified = notifier.wait(id, waitMs, signal)
    // The deployment before its lines: once it is finished, its last lines are stored.
    const deployment = await repository.find(id)
    if (deployment === null) return
    for (let hasMore = true; hasMore && !signal.aborted; ) {
      const lines = await repository.readLog(id, after, PAGE_SIZE)
      hasMore = lines.length === PAGE_SIZE
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
    if (!(await notified)) silentMs += waitMs
    if (silentMs < idleMs || signal.aborted) continue
    silentMs = 0
    yield 'idle'
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

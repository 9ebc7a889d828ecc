import { isStatementRejected } from './errors.ts'
import { withTimeout } from './with-timeout.ts'

export interface BatcherOptions<Request, Result> {
  /**
   * Executes a batch with one statement, all or nothing. Returns one result per request, in the order of the requests.
   * `deadline` is the earliest of the batch, in milliseconds of `performance.now()`: a caller stops waiting then.
   */
  readonly execute: (batch: readonly Request[], deadline: number) => Promise<readonly Result[]>
  /** Statements in flight, not counting slow ones. */
  readonly maxInFlight: number
  readonly maxBatchSize: number
  /**
   * Milliseconds after which a statement no longer counts as in flight. It probably waits for a row lock, which must not
   * block requests for other rows.
   */
  readonly slowMs: number
  /**
   * Milliseconds from the call to a `TimeoutError`. A request that times out in the queue is not executed. If it was
   * executed already, its effect is unknown.
   */
  readonly timeoutMs: number
}

interface PendingRequest<Request, Result> {
  readonly request: Request
  readonly deadline: number
  readonly resolve: (result: Result) => void
  readonly reject: (error: unknown) => void
}

/**
 * Group commit: requests that arrive while `maxInFlight` statements are in flight share the next statement. A request
 * never waits for others to join its batch: below that limit, it is executed immediately.
 */
export const createBatcher = <Request, Result>({
  execute,
  maxInFlight,
  maxBatchSize,
  slowMs,
  timeoutMs,
}: BatcherOptions<Request, Result>) => {
  const queue = new Set<PendingRequest<Request, Result>>()
  /** The queued and the executing requests whose caller still waits. */
  const pending = new Set<PendingRequest<Request, Result>>()
  let inFlight = 0

  const executeBatch = async (batch: readonly PendingRequest<Request, Result>[]): Promise<void> => {
    try {
      const deadline = Math.min(...batch.map(item => item.deadline))
      const results = await execute(
        batch.map(({ request }) => request),
        deadline,
      )
      if (results.length !== batch.length) throw new Error(`${batch.length} requests, ${results.length} results`)
      for (const [index, { resolve }] of batch.entries()) resolve(results[index] as Result)
    } catch (error) {
      // One invalid request must not fail the others: each is executed alone, unless its caller has timed out.
      if (batch.length > 1 && isStatementRejected(error)) {
        for (const item of batch) if (pending.has(item)) await executeBatch([item])
      } else for (const { reject } of batch) reject(error)
    }
  }

  const flush = (): void => {
    while (inFlight < maxInFlight && queue.size > 0) {
      const batch = [...queue].slice(0, maxBatchSize)
      for (const item of batch) queue.delete(item)
      inFlight += 1
      const release = () => {
        inFlight -= 1
        flush()
      }
      // A slow batch releases its slot once, after `slowMs`; its callers still get their results.
      withTimeout(executeBatch(batch), slowMs).then(release, release)
    }
  }

  return async (request: Request): Promise<Result> => {
    const { promise, resolve, reject } = Promise.withResolvers<Result>()
    const item = { request, deadline: performance.now() + timeoutMs, resolve, reject }
    pending.add(item)
    queue.add(item)
    flush()
    return withTimeout(promise, timeoutMs).finally(() => {
      pending.delete(item)
      queue.delete(item)
    })
  }
}

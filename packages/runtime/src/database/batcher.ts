import { isStatementRejected } from './errors.ts'
import { createTimeoutError } from './time.ts'

export interface BatcherOptions<Request, Result> {
  /**
   * Executes a batch with one statement, all or nothing. Returns one result per request, in the order of the requests.
   * `deadline` is the earliest of the batch, in milliseconds of `performance.now()`: a caller stops waiting then.
   */
  readonly execute: (batch: readonly Request[], deadline: number) => Promise<readonly Result[]>
  /** Statements in flight, not counting slow ones. */
  readonly maxInFlight: number
  /** The limit behind a statement that several requests share, for larger batches; by default `maxInFlight`. */
  readonly maxSharedInFlight?: number
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
  readonly rows: readonly string[]
  readonly deadline: number
  readonly resolve: (result: Result) => void
  readonly reject: (error: unknown) => void
  /** Undefined: settled. */
  timer: NodeJS.Timeout | undefined
}

const NO_ROWS: readonly string[] = []

/**
 * Splits a queue. `batch` has the first requests whose rows are neither busy nor those of an earlier request, so the order of
 * the requests for a row stays.
 */
export const splitQueue = <Item extends { readonly rows: readonly string[] }>(
  queue: readonly Item[],
  isBusy: (row: string) => boolean,
  maxBatchSize: number,
): { readonly batch: readonly Item[]; readonly rest: Item[] } => {
  const batch: Item[] = []
  const rest: Item[] = []
  const earlier = new Set<string>()
  for (const item of queue) {
    const hasRoom = batch.length < maxBatchSize
    if (hasRoom && !item.rows.some(row => isBusy(row) || earlier.has(row))) batch.push(item)
    else rest.push(item)
    if (hasRoom) for (const row of item.rows) earlier.add(row)
  }
  return { batch, rest }
}

/**
 * Group commit: the requests that arrive in one turn of the event loop, or while the limit of statements is in flight, share
 * the next statement. A request waits for no other turn: below that limit, its statement is executed at the end of its own.
 * Without the turn, the first of the requests that follow the end of a statement would go alone, and most statements would
 * have one request. A client that is alone does not even wait for the turn: if no statement is in flight and the last one had
 * one request, the next one is executed immediately.
 */
export const createBatcher = <Request, Result>({
  execute,
  maxInFlight,
  maxSharedInFlight = maxInFlight,
  maxBatchSize,
  slowMs,
  timeoutMs,
}: BatcherOptions<Request, Result>) => {
  // Each statement has its own set of rows, and the queue is an array: a set that items enter and leave outgrows one table
  // after the other, and V8 links each to the next. A table in the old generation keeps all later ones, with their items.
  /** Some may have timed out. */
  let queue: PendingRequest<Request, Result>[] = []
  /** The rows of each statement that is executed. */
  let busyRows: readonly ReadonlySet<string>[] = []
  const isBusy = (row: string) => busyRows.some(rows => rows.has(row))
  let inFlight = 0
  let isScheduled = false
  /** Whether several requests shared the last statement. Before the first one, that is not known. */
  let areShared = true
  const isFull = () => inFlight >= (areShared ? maxSharedInFlight : maxInFlight)

  /** Whether the caller still waits; then it gets its result now. */
  const endWait = (item: PendingRequest<Request, Result>): boolean => {
    if (!item.timer) return false
    clearTimeout(item.timer)
    item.timer = undefined
    return true
  }

  const executeBatch = async (batch: readonly PendingRequest<Request, Result>[], deadline: number): Promise<void> => {
    try {
      const results = await execute(
        batch.map(({ request }) => request),
        deadline,
      )
      if (results.length !== batch.length) throw new Error(`${batch.length} requests, ${results.length} results`)
      for (const [index, item] of batch.entries()) if (endWait(item)) item.resolve(results[index] as Result)
    } catch (error) {
      // One invalid request must not fail the others: each is executed alone, unless its caller has timed out.
      if (batch.length > 1 && isStatementRejected(error)) {
        for (const item of batch) if (item.timer) await executeBatch([item], item.deadline)
      } else for (const item of batch) if (endWait(item)) item.reject(error)
    }
  }

  /** A slow batch releases its slot once, after `slowMs`; its callers still get their results, and its rows stay busy. */
  const executeInSlot = async (batch: readonly PendingRequest<Request, Result>[], deadline: number): Promise<void> => {
    const ownRows = new Set(batch.flatMap(({ rows }) => rows))
    busyRows = [...busyRows, ownRows]
    areShared = batch.length > 1
    inFlight += 1
    let isSlow = false
    const timer = setTimeout(() => {
      isSlow = true
      inFlight -= 1
      flush()
    }, slowMs)
    await executeBatch(batch, deadline)
    clearTimeout(timer)
    busyRows = busyRows.filter(rows => rows !== ownRows)
    if (!isSlow) inFlight -= 1
    flush()
  }

  const flush = (): void => {
    while (!isFull() && queue.length > 0) {
      const waiting = queue.filter(({ timer }) => timer !== undefined)
      const { batch, rest } = splitQueue(waiting, isBusy, maxBatchSize)
      queue = rest
      // The earliest, because the requests are in the order of their calls.
      const deadline = batch[0]?.deadline
      // Every request waits for a row.
      if (deadline === undefined) return
      void executeInSlot(batch, deadline)
    }
  }

  const schedule = (): void => {
    if (isScheduled || isFull()) return
    if (inFlight === 0 && !areShared) {
      flush()
      return
    }
    isScheduled = true
    setImmediate(() => {
      isScheduled = false
      flush()
    })
  }

  /**
   * `rows` is what the request changes. A request that has one of them in common with an earlier one is executed after it, in
   * another statement.
   */
  return (request: Request, rows: readonly string[] = NO_ROWS): Promise<Result> => {
    const { promise, resolve, reject } = Promise.withResolvers<Result>()
    const expire = () => {
      item.timer = undefined
      reject(createTimeoutError(timeoutMs))
    }
    const deadline = performance.now() + timeoutMs
    const timer = setTimeout(expire, timeoutMs)
    const item: PendingRequest<Request, Result> = { request, rows, deadline, resolve, reject, timer }
    queue.push(item)
    schedule()
    return promise
  }
}

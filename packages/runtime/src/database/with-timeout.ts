/** The result did not arrive in time. The operation may still take effect. */
export class TimeoutError extends Error {
  override readonly name = 'TimeoutError'
}

export const createTimeoutError = (timeoutMs: number): TimeoutError =>
  new TimeoutError(`no answer within ${Math.round(timeoutMs)} ms`)

/**
 * The result of `operation`, or a `TimeoutError` after `timeoutMs`. The operation is not cancelled; a later result or
 * error of it is ignored.
 */
export const withTimeout = <Result>(operation: PromiseLike<Result>, timeoutMs: number): Promise<Result> =>
  // Not `Promise.race`, which costs several promises per call: each request has several timeouts.
  new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(createTimeoutError(timeoutMs)), timeoutMs)
    operation.then(
      result => {
        clearTimeout(timer)
        resolve(result)
      },
      error => {
        clearTimeout(timer)
        reject(error)
      },
    )
  })

/** As `withTimeout`, but rejects with the reason of the signal once it aborts. */
export const untilAborted = async <Result>(operation: PromiseLike<Result>, signal: AbortSignal): Promise<Result> => {
  const aborted = Promise.withResolvers<never>()
  const onAbort = () => aborted.reject(signal.reason)
  if (signal.aborted) onAbort()
  signal.addEventListener('abort', onAbort, { once: true })
  try {
    return await Promise.race([operation, aborted.promise])
  } finally {
    signal.removeEventListener('abort', onAbort)
  }
}

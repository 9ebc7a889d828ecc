/** The result did not arrive in time. The operation may still take effect. */
export class TimeoutError extends Error {
  override readonly name = 'TimeoutError'
}

/**
 * The result of `operation`, or a `TimeoutError` after `timeoutMs`. The operation is not cancelled; a later result or
 * error of it is ignored.
 */
export const withTimeout = async <Result>(operation: PromiseLike<Result>, timeoutMs: number): Promise<Result> => {
  const { promise: timeout, reject } = Promise.withResolvers<never>()
  const timer = setTimeout(() => reject(new TimeoutError(`no answer within ${Math.round(timeoutMs)} ms`)), timeoutMs)
  try {
    return await Promise.race([operation, timeout])
  } finally {
    clearTimeout(timer)
  }
}

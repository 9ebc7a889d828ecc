/** `work`, or a rejection once `ms` have passed. What was begun goes on: nobody looks at its end. */
export const within = async <Value>(ms: number, work: Promise<Value>): Promise<Value> => {
  const { promise: late, reject } = Promise.withResolvers<never>()
  const timer = setTimeout(() => reject(new Error(`no answer within ${ms} ms`)), ms)
  return Promise.race([work, late]).finally(() => clearTimeout(timer))
}

// The methods of a resource differ in their arguments, and only `any` accepts all of them as a type parameter.
// biome-ignore lint/suspicious/noExplicitAny: see above.
type AnyArguments = any[]

/** A protected resource: each method takes the fencing token first. */
export type GuardedResource = Readonly<Record<string, (fencingToken: number, ...args: AnyArguments) => unknown>>

/** The same methods without the fencing token. */
export type Guarded<Resource extends GuardedResource> = {
  readonly [Method in keyof Resource]: Resource[Method] extends (
    fencingToken: number,
    ...args: infer Args
  ) => infer Result
    ? (...args: Args) => Result
    : never
}

/** What a guard needs of a tenure. */
export interface Fencing {
  readonly fencingToken: number
  assertLeader(): void
}

/**
 * Wraps the methods of a resource for one tenure: each call first throws LeadershipLostError if the tenure has ended, and
 * passes the fencing token. The check keeps late calls from being sent; the resource must reject those that were sent in
 * time and arrive late.
 */
export const guardResource = <Resource extends GuardedResource>(
  resource: Resource,
  tenure: Fencing,
): Guarded<Resource> => {
  const wrap =
    (method: string) =>
    (...args: unknown[]) => {
      tenure.assertLeader()
      return resource[method]?.(tenure.fencingToken, ...args)
    }
  return Object.fromEntries(Object.keys(resource).map(method => [method, wrap(method)])) as Guarded<Resource>
}

/** A write had a lower fencing token than an earlier one: its sender is a former leader. */
export class StaleFencingTokenError extends Error {
  override readonly name = 'StaleFencingTokenError'
  readonly fencingToken: number
  readonly highest: number

  constructor(fencingToken: number, highest: number) {
    super(`Fencing token ${fencingToken} is below ${highest}: a newer leader has written. Stop.`)
    this.fencingToken = fencingToken
    this.highest = highest
  }
}

/**
 * The example of a resource that checks the fencing token: every method rejects a token below the highest so far with
 * StaleFencingTokenError. It protects what one process has in memory. A database compares and writes in one statement:
 * `update … set …, fence = $1 where fence <= $1`.
 */
export const guard = <Resource extends Readonly<Record<string, (...args: AnyArguments) => unknown>>>(
  resource: Resource,
): {
  readonly [Method in keyof Resource]: (
    fencingToken: number,
    ...args: Parameters<Resource[Method]>
  ) => ReturnType<Resource[Method]>
} => {
  let highest = 0
  const wrap =
    (method: string) =>
    (fencingToken: number, ...args: unknown[]) => {
      if (!(fencingToken >= highest)) throw new StaleFencingTokenError(fencingToken, highest)
      highest = fencingToken
      return resource[method]?.(...args)
    }
  return Object.fromEntries(Object.keys(resource).map(method => [method, wrap(method)])) as never
}

/** What became of some items that were sent as one: all of them or none. */
export type BatchResult<Item, Failure> =
  | { readonly kind: 'accepted' }
  | {
      readonly kind: 'refused'
      readonly reason: string
      /** The items that the answer is about, if it says so. */
      readonly named?: readonly Item[]
      /** Whether those are to blame for sure; if not, they are tried by themselves first. */
      readonly isCertain?: boolean
    }
  /** It is about none of the items: the provider does not answer. */
  | { readonly kind: 'failed'; readonly failure: Failure }

export type BisectResult<Item, Failure> =
  | {
      readonly kind: 'bisected'
      readonly refused: ReadonlyMap<Item, string>
      /** Left over when the search was ended. */
      readonly skipped: readonly Item[]
    }
  | { readonly kind: 'failed'; readonly failure: Failure }

/** When a search ends. Whoever comes again without what was refused gets further. */
export interface BisectLimits {
  /** Refusals. Above the logarithm of a batch's size, so that one is found at least. */
  readonly maxRejections: number
  /** Milliseconds, unless nothing has been taken or found by then. Half of what a call of the provider may take. */
  readonly timeoutMs?: number
  readonly now?: () => number
}

/**
 * Sends each batch as one. Of one that is refused it finds the items to blame, by what the answer says or else by
 * halving, so that all others are taken: a faulty item costs about twice the logarithm of the batch's size. The search
 * is bounded, for a call that runs out of time would have to start all over.
 */
export const bisect = async <Item, Failure>(
  batches: readonly (readonly Item[])[],
  attempt: (items: readonly Item[]) => Promise<BatchResult<Item, Failure>>,
  { maxRejections: most, timeoutMs: withinMs = 5_000, now = () => performance.now() }: BisectLimits,
): Promise<BisectResult<Item, Failure>> => {
  const started = now()
  const refused = new Map<Item, string>()
  const waiting = [...batches]
  let refusals = 0
  let isFurther = false
  while (refusals < most && !(isFurther && now() - started >= withinMs)) {
    const batch = waiting.shift()
    if (!batch) break
    if (batch.length === 0) continue
    const result = await attempt(batch)
    if (result.kind === 'failed') return result
    if (result.kind === 'accepted') {
      isFurther = true
      continue
    }
    refusals += 1
    const { named = [], isCertain = false, reason } = result
    const blamed = batch.length === 1 ? batch : batch.filter(item => named.includes(item))
    const rest = batch.filter(item => !blamed.includes(item))
    if (batch.length === 1 || (isCertain && blamed.length > 0)) {
      for (const item of blamed) refused.set(item, reason)
      isFurther = true
      waiting.unshift(rest)
      continue
    }
    // Whoever is named wrongly must not cost more than not being told: the others are halved all the same.
    const aside = rest.length > 0 ? blamed : []
    const others = rest.length > 0 ? rest : batch
    const middle = Math.ceil(others.length / 2)
    waiting.unshift(aside, others.slice(0, middle), others.slice(middle))
  }
  return { kind: 'bisected', refused, skipped: waiting.flat() }
}

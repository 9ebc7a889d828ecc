/** What became of some items that were sent as one: all of them or none. */
export type Attempt<Item, Failure> =
  | { readonly kind: 'taken' }
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

export type Isolated<Item, Failure> =
  | {
      readonly kind: 'isolated'
      readonly refused: ReadonlyMap<Item, string>
      /** Left over when the search was ended. */
      readonly untried: readonly Item[]
    }
  | { readonly kind: 'failed'; readonly failure: Failure }

/**
 * Sends each batch as one. Of one that is refused it finds the items to blame, by what the answer says or else by
 * halving, so that all others are taken: a faulty item costs about twice the logarithm of the batch's size.
 *
 * The search ends after `most` refusals, for a call that runs out of time would have to start all over; whoever comes
 * again without what was refused gets further. `most` above the logarithm of a batch's size finds one at least.
 */
export const isolate = async <Item, Failure>(
  batches: readonly (readonly Item[])[],
  attempt: (items: readonly Item[]) => Promise<Attempt<Item, Failure>>,
  most: number,
): Promise<Isolated<Item, Failure>> => {
  const refused = new Map<Item, string>()
  const waiting = [...batches]
  let refusals = 0
  while (refusals < most) {
    const batch = waiting.shift()
    if (!batch) break
    if (batch.length === 0) continue
    const result = await attempt(batch)
    if (result.kind === 'failed') return result
    if (result.kind === 'taken') continue
    refusals += 1
    const { named = [], isCertain = false, reason } = result
    const blamed = batch.length === 1 ? batch : batch.filter(item => named.includes(item))
    const rest = batch.filter(item => !blamed.includes(item))
    if (batch.length === 1 || (isCertain && blamed.length > 0)) {
      for (const item of blamed) refused.set(item, reason)
      waiting.unshift(rest)
      continue
    }
    // Whoever is named wrongly must not cost more than not being told: the others are halved all the same.
    const aside = rest.length > 0 ? blamed : []
    const others = rest.length > 0 ? rest : batch
    const middle = Math.ceil(others.length / 2)
    waiting.unshift(aside, others.slice(0, middle), others.slice(middle))
  }
  return { kind: 'isolated', refused, untried: waiting.flat() }
}

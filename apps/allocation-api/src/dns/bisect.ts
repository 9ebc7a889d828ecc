/** The result of a batch, which is accepted or rejected as a whole. */
export type BatchResult<Item, Failure> =
  | { readonly kind: 'accepted' }
  | {
      readonly kind: 'rejected'
      readonly reason: string
      /** The items that the response names, if any. */
      readonly suspects?: readonly Item[]
      /** Whether the named items are certainly at fault. If not, they are tried alone first. */
      readonly isCertain?: boolean
      /** It is not known that an item is at fault: the first and the last one are tried alone first. */
      readonly isDoubtful?: boolean
    }
  /** No item is at fault: the provider is unavailable. */
  | { readonly kind: 'failed'; readonly failure: Failure }

export type BisectResult<Item, Failure> =
  | {
      readonly kind: 'bisected'
      readonly rejected: ReadonlyMap<Item, string>
      /** Not tried before the search ended. */
      readonly skipped: readonly Item[]
    }
  | { readonly kind: 'failed'; readonly failure: Failure }
  /** Nothing was accepted, and two items alone were rejected as the batch was: no item is at fault. */
  | { readonly kind: 'refused'; readonly reason: string }

/** When the search ends. A later call without the rejected items gets further. */
export interface BisectLimits {
  /** More than the logarithm of a batch's size, so that at least one faulty item is found. */
  readonly maxRejections: number
  /** Milliseconds, if the search has made progress by then. Half of the provider timeout. */
  readonly timeoutMs?: number
  readonly now?: () => number
}

/**
 * Sends each batch. If a batch is rejected, finds the faulty items by the names in the response, or by bisection, so that
 * all others are accepted: a faulty item costs about twice the logarithm of the batch's size. The search is bounded,
 * because a call that times out would have to start again.
 */
export const bisect = async <Item, Failure>(
  batches: readonly (readonly Item[])[],
  attempt: (items: readonly Item[]) => Promise<BatchResult<Item, Failure>>,
  { maxRejections, timeoutMs = 5_000, now = () => performance.now() }: BisectLimits,
): Promise<BisectResult<Item, Failure>> => {
  const started = now()
  const rejected = new Map<Item, string>()
  const pending = [...batches]
  let rejections = 0
  let madeProgress = false
  let isAnyAccepted = false
  let doubtful = 0
  while (rejections < maxRejections && !(madeProgress && now() - started >= timeoutMs)) {
    const batch = pending.shift()
    if (!batch) break
    if (batch.length === 0) continue
    const result = await attempt(batch)
    if (result.kind === 'failed') return result
    if (result.kind === 'accepted') {
      madeProgress = true
      isAnyAccepted = true
      continue
    }
    rejections += 1
    const { suspects: named = [], isCertain = false, isDoubtful = false, reason } = result
    if (isDoubtful && !isAnyAccepted) {
      if (batch.length === 1 && ++doubtful === 2) return { kind: 'refused', reason }
      if (batch.length > 2) {
        pending.unshift(batch.slice(0, 1), batch.slice(-1), batch.slice(1, -1))
        continue
      }
    }
    const blamed = batch.length === 1 ? batch : batch.filter(item => named.includes(item))
    const rest = batch.filter(item => !blamed.includes(item))
    if (batch.length === 1 || (isCertain && blamed.length > 0)) {
      for (const item of blamed) rejected.set(item, reason)
      madeProgress = true
      pending.unshift(rest)
      continue
    }
    // A wrong name must not cost more than no name, so the other items are bisected as well.
    const suspects = rest.length > 0 ? blamed : []
    const others = rest.length > 0 ? rest : batch
    const middle = Math.ceil(others.length / 2)
    pending.unshift(suspects, others.slice(0, middle), others.slice(middle))
  }
  return { kind: 'bisected', rejected, skipped: pending.flat() }
}

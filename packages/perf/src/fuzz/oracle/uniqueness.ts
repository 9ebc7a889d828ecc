/** A name that was given to somebody, or freed; `name` null: unknown which. Times in milliseconds of one clock. */
export interface NameEvent {
  readonly kind: 'granted' | 'freed'
  readonly name: string | null
  readonly token: string
  readonly sentAt: number
  readonly answeredAt: number
}

/** Names that were granted while somebody else had them: two grants, and nothing in between that may have freed it. */
export const namesGrantedTwice = (events: readonly NameEvent[]): string[] => {
  const grants = Map.groupBy(
    events.filter(({ kind }) => kind === 'granted'),
    ({ name }) => name ?? '',
  )
  const frees = Map.groupBy(
    events.filter(({ kind }) => kind === 'freed'),
    ({ name }) => name ?? '',
  )
  return [...grants].flatMap(([name, all]) => {
    // The same token again is the same grant, told again for an Idempotency-Key.
    const own = [...new Map(all.map(grant => [grant.token, grant])).values()].toSorted(
      (a, b) => a.answeredAt - b.answeredAt,
    )
    const left = [...(frees.get(name) ?? []), ...(frees.get('') ?? [])].toSorted((a, b) => a.answeredAt - b.answeredAt)
    return own.flatMap((grant, index) => {
      const before = own[index - 1]
      if (!before) return []
      const at = left.findIndex(free => free.answeredAt >= before.sentAt && free.sentAt <= grant.answeredAt)
      if (at < 0) return [`${name} was granted twice`]
      if (left[at]?.name !== null) left.splice(at, 1)
      return []
    })
  })
}

/** Leases that were granted to two: every successful write has a generation of its own. */
export const createLeaseLedger = () => {
  const holders = new Map<string, string>()
  return {
    /** The fault, if there is one. */
    granted(slot: string, generation: number, holder: string): string | null {
      const key = `${generation} ${slot}`
      const before = holders.get(key)
      holders.set(key, holder)
      return before === undefined
        ? null
        : `generation ${generation} of ${slot} was granted to ${before} and to ${holder}`
    },
  }
}

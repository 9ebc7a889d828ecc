/** A name that was granted or released; `name` null: unknown which. Times in milliseconds of one clock. */
export interface NameEvent {
  readonly kind: 'granted' | 'released'
  readonly name: string | null
  readonly token: string
  readonly sentAt: number
  readonly answeredAt: number
}

/** Names that were granted twice without a possible release in between. */
export const findDuplicateNames = (events: readonly NameEvent[]): string[] => {
  const grants = Map.groupBy(
    events.filter(({ kind }) => kind === 'granted'),
    ({ name }) => name ?? '',
  )
  const releases = Map.groupBy(
    events.filter(({ kind }) => kind === 'released'),
    ({ name }) => name ?? '',
  )
  return [...grants].flatMap(([name, all]) => {
    // The same token is the same grant, replayed for an Idempotency-Key.
    const distinct = [...new Map(all.map(grant => [grant.token, grant])).values()].toSorted(
      (a, b) => a.answeredAt - b.answeredAt,
    )
    const unused = [...(releases.get(name) ?? []), ...(releases.get('') ?? [])].toSorted(
      (a, b) => a.answeredAt - b.answeredAt,
    )
    return distinct.flatMap((grant, index) => {
      const before = distinct[index - 1]
      if (!before) return []
      const at = unused.findIndex(release => release.answeredAt >= before.sentAt && release.sentAt <= grant.answeredAt)
      if (at < 0) return [`${name} was granted twice`]
      if (unused[at]?.name !== null) unused.splice(at, 1)
      return []
    })
  })
}

/** Finds generations that were granted twice: every successful write has another generation. */
export const createGenerationLedger = () => {
  const holders = new Map<string, string>()
  return {
    /** Records a grant. Returns the violation, or null. */
    record(slot: string, generation: number, holder: string): string | null {
      const key = `${generation} ${slot}`
      const before = holders.get(key)
      holders.set(key, holder)
      return before === undefined
        ? null
        : `generation ${generation} of ${slot} was granted to ${before} and to ${holder}`
    },
  }
}

export interface EntryWithId {
  readonly id: number
  readonly subdomain: string
  readonly event: string
  readonly from: string
  readonly to: string
  readonly owner: string
  readonly requestId: string | null
  readonly detail: string | null
}

export interface TableRow {
  readonly subdomain: string
  readonly state: 'reserved' | 'active'
  readonly owner: string
  readonly address: string | null
}

/** What a pass did to records changes no state, and may stand behind a verb that came while it was under way. */
const ofRecords = new Set(['published', 'withdrawn', 'failing', 'repaired'])

/** Whether the history, oldest first, leads to exactly the table, each transition from where the one before had ended. */
export const replayFaults = (history: readonly EntryWithId[], table: readonly TableRow[]): string[] => {
  const faults: string[] = []
  const states = new Map<string, { readonly state: string; readonly owner: string }>()
  for (const { id, subdomain, event, from, to, owner } of history) {
    if (ofRecords.has(event)) continue
    const before = states.get(subdomain)
    if ((before?.state ?? 'none') !== from)
      faults.push(`history ${id}: ${subdomain} was ${event} from ${from}, and was ${before?.state ?? 'none'}`)
    if (before && from !== 'none' && before.owner !== owner)
      faults.push(`history ${id}: ${subdomain} was ${event} for ${owner}, and belonged to ${before.owner}`)
    if (to === 'none') states.delete(subdomain)
    else states.set(subdomain, { state: to, owner })
  }
  for (const { subdomain, state, owner } of table) {
    const replayed = states.get(subdomain)
    states.delete(subdomain)
    if (replayed?.state !== state || replayed.owner !== owner)
      faults.push(
        `${subdomain} is ${state} of ${owner}; by its history ${replayed ? `${replayed.state} of ${replayed.owner}` : 'free'}`,
      )
  }
  for (const [subdomain, { state, owner }] of states)
    faults.push(`${subdomain} is free; by its history ${state} of ${owner}`)
  return faults
}

import type { NameOperation } from './operations.ts'
import type { EntryWithId } from './replay.ts'

const eventOf = { grant: 'reserved', renewal: 'renewed', commitment: 'committed', release: 'released' } as const

/** Request ids are `<intention>.<attempt>`. */
export const intentionOf = (requestId: string): string => requestId.replace(/\.\d+$/, '')

/**
 * No acknowledged write is lost, and none is made twice: each is in the history under its request id, once. A reserve may be
 * decided anew when what it gave has ended, and a renewal has no key, so of these there can be more.
 * A commit or release that was refused is not in it at all.
 */
export const acknowledgedFaults = (acts: readonly NameOperation[], history: readonly EntryWithId[]): string[] => {
  const rows = Map.groupBy(history, ({ requestId }) => intentionOf(requestId ?? ''))
  return acts.flatMap(act => {
    const made = (event: string) =>
      (rows.get(act.intention) ?? []).filter(row => row.event === event && row.subdomain === act.name).length
    if (act.kind === 'denial') {
      const event = { commit: 'committed', renew: 'renewed', release: 'released' }[act.verb]
      // A renewal that got no answer may have been made before the one that was refused.
      return act.verb !== 'renew' && made(event) > 0
        ? [`refused and made: ${act.verb} of ${act.name} (${act.intention}) answered ${act.status}`]
        : []
    }
    if (act.kind === 'attempted-commit' || (act.kind === 'release' && !act.isAnswered)) return []
    const event = eventOf[act.kind]
    const times = made(event)
    if (times === 0) return [`lost: ${act.name} was ${event} for ${act.intention}, and the history does not have it`]
    const isOnce = act.kind === 'commitment' || act.kind === 'release'
    return isOnce && times > 1 ? [`made ${times} times: ${act.name} ${event} for ${act.intention}`] : []
  })
}

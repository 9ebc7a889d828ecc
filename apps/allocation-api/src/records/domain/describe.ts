import type { StoredRecords } from './stored.ts'
import type { TenantRecordSet } from './types.ts'
import { quoteText, toShownValue } from './values.ts'

const MAX_DESCRIBED = 20

/** As tenants see them, by name and type. */
export const toTenantSets = ({ sets, challenges }: StoredRecords, challengeTtl: number): TenantRecordSet[] => {
  const byOwner = Map.groupBy(challenges, ({ name, owner }) => `${name} ${owner}`)
  const ofChallenges = Array.from(byOwner.values()).flatMap((own): TenantRecordSet[] => {
    const [first] = own
    const values = own.map(({ value }) => quoteText(value)).sort()
    const set = { type: 'TXT', ttl: challengeTtl, values, isPublished: true, isChallenge: true } as const
    return first ? [{ ...set, name: first.name, owner: first.owner }] : []
  })
  const shown = sets.map(set => ({ ...set, values: set.values.map(value => toShownValue(set.type, value)).sort() }))
  return [...shown, ...ofChallenges].sort((a, b) =>
    `${a.name} ${a.type} ${a.owner}` < `${b.name} ${b.type} ${b.owner}` ? -1 : 1,
  )
}

/** What has changed in the zone, for the history; null: nothing. */
export const describeChanges = (before: StoredRecords, after: StoredRecords): string | null => {
  const toTexts = (records: StoredRecords) =>
    new Map(
      Array.from(
        Map.groupBy(
          toTenantSets(records, 0).filter(({ isPublished }) => isPublished),
          ({ name, type }) => `${name} ${type}`,
        ),
        ([key, sets]) => [key, JSON.stringify(sets.map(({ ttl, values }) => [ttl, values]))],
      ),
    )
  const [old, current] = [toTexts(before), toTexts(after)]
  const lines = [
    ...Array.from(current).flatMap(([key, text]) => (old.get(key) === text ? [] : [`${key} set`])),
    ...Array.from(old.keys()).flatMap(key => (current.has(key) ? [] : [`${key} deleted`])),
  ]
  if (lines.length === 0) return null
  const others = lines.length > MAX_DESCRIBED ? [`${lines.length - MAX_DESCRIBED} others`] : []
  return [...lines.slice(0, MAX_DESCRIBED), ...others].join(', ')
}

import type { Commitment, Grant, NameOperation } from './operations.ts'

/** The time for which, by what was answered, a token had its name without doubt. */
export interface OwnershipInterval {
  readonly grant: Grant
  readonly from: number
  readonly to: number
  /** Absent: not committed as far as is known. */
  readonly commitment?: Commitment
  /** The first moment at which it may have become active. */
  readonly mayBeActiveFrom: number
}

const earliest = (times: readonly number[]): number => times.reduce((least, time) => Math.min(least, time), Infinity)

const tenureOf = (grant: Grant, acts: readonly NameOperation[]): OwnershipInterval => {
  const { token, reservedAt } = grant
  const own = acts.filter(act => 'token' in act && act.token === token)
  const commitment = own.find(act => act.kind === 'commitment')
  const expiries = own.flatMap(act => (act.kind === 'grant' || act.kind === 'renewal' ? [act.expiresAt] : []))
  const runsOut = commitment ? Number.POSITIVE_INFINITY : Math.max(...expiries)
  // A release by another token changes nothing; one without a token that ended before had nothing to do with it.
  const releases = acts.flatMap(act =>
    act.kind === 'release' && (act.token === token || (act.token === null && act.end >= reservedAt))
      ? [Math.max(act.start, reservedAt)]
      : [],
  )
  const commits = own.flatMap(act => (act.kind === 'commitment' || act.kind === 'attempted-commit' ? [act.start] : []))
  return {
    grant,
    from: reservedAt,
    to: Math.min(runsOut, earliest(releases)),
    ...(commitment && { commitment }),
    mayBeActiveFrom: earliest(commits),
  }
}

/** Of each token that was ever granted for one name, by its beginning. A reserve that was answered twice is one grant. */
export const toOwnershipIntervals = (acts: readonly NameOperation[]): OwnershipInterval[] => {
  const grants = new Map<string, Grant>()
  for (const act of acts) if (act.kind === 'grant' && !grants.has(act.token)) grants.set(act.token, act)
  return [...grants.values()].map(grant => tenureOf(grant, acts)).sort((a, b) => a.from - b.from)
}

export const byName = (acts: readonly NameOperation[]): ReadonlyMap<string, readonly NameOperation[]> =>
  Map.groupBy(acts, act => act.name)

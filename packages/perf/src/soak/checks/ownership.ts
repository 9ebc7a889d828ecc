import type { Commitment, Grant, NameOperation, RejectedCall, Span, Update } from './operations.ts'

/** The time during which a token certainly had its name, according to the responses. */
export interface OwnershipInterval {
  readonly grant: Grant
  readonly from: number
  readonly to: number
  /** The last expiry of the reservation. A commit that began before it can become visible after it. */
  readonly expiresAt: number
  /** Absent: no commit was acknowledged. */
  readonly commitment?: Commitment
  readonly updates: readonly Update[]
  /** The earliest time at which the name can be active. */
  readonly mayBeActiveFrom: number
}

const toEarliest = (times: readonly number[]): number => times.reduce((first, time) => Math.min(first, time), Infinity)

const toOwnershipInterval = (grant: Grant, operations: readonly NameOperation[]): OwnershipInterval => {
  const { token, reservedAt } = grant
  const own = operations.filter(operation => 'token' in operation && operation.token === token)
  const commitment = own.find(operation => operation.kind === 'commitment')
  const expiries = own.flatMap(operation =>
    operation.kind === 'grant' || operation.kind === 'renewal' ? [operation.expiresAt] : [],
  )
  const expiresAt = Math.max(...expiries)
  // A release by another token changes nothing. One without a token that ended before the grant released another reservation.
  const releases = operations.flatMap(operation =>
    operation.kind === 'release' &&
    (operation.token === token || (operation.token === null && operation.end >= reservedAt))
      ? [Math.max(operation.start, reservedAt)]
      : [],
  )
  const commits = own.flatMap(operation =>
    operation.kind === 'commitment' || operation.kind === 'unanswered-commit' ? [operation.start] : [],
  )
  return {
    grant,
    from: reservedAt,
    to: Math.min(commitment ? Number.POSITIVE_INFINITY : expiresAt, toEarliest(releases)),
    expiresAt,
    ...(commitment && { commitment }),
    updates: own.filter(operation => operation.kind === 'update'),
    mayBeActiveFrom: toEarliest(commits),
  }
}

/** The addresses that the name can have at some time in the span: the last one that was set before, and those set in it. */
export const findPossibleAddresses = (
  { commitment, updates }: OwnershipInterval,
  { start, end }: Span,
): readonly string[] => {
  const writes = [...(commitment ? [commitment] : []), ...updates].sort((a, b) => a.start - b.start)
  const last = writes.findLastIndex(write => write.end < start)
  return writes.filter((write, index) => index >= last && write.start <= end).map(({ address }) => address)
}

/** One interval per token of one name, in order of start. A reserve with two responses is one grant. */
export const toOwnershipIntervals = (operations: readonly NameOperation[]): OwnershipInterval[] => {
  const grants = new Map<string, Grant>()
  for (const operation of operations)
    if (operation.kind === 'grant' && !grants.has(operation.token)) grants.set(operation.token, operation)
  return [...grants.values()].map(grant => toOwnershipInterval(grant, operations)).sort((a, b) => a.from - b.from)
}

export const groupOperations = (operations: readonly NameOperation[]): ReadonlyMap<string, readonly NameOperation[]> =>
  Map.groupBy(operations, operation => operation.name)

const formatTime = (time: number): string => (Number.isFinite(time) ? new Date(time).toISOString() : 'now')

export const describeInterval = ({ grant, from, to, commitment }: OwnershipInterval): string => {
  const committed = commitment ? `, committed ${formatTime(commitment.start)} to ${formatTime(commitment.end)}` : ''
  return `${grant.owner} owned ${grant.name} from ${formatTime(from)} to at least ${formatTime(to)}${committed}`
}

const findOverlaps = (intervals: readonly OwnershipInterval[]): string[] => {
  const violations: string[] = []
  let longest: OwnershipInterval | undefined
  for (const interval of intervals) {
    if (longest && interval.from < longest.to && interval.to > interval.from)
      violations.push(`two owners: ${describeInterval(longest)}; ${describeInterval(interval)}`)
    if (!longest || interval.to > longest.to) longest = interval
  }
  return violations
}

const findWrongRejections = (intervals: readonly OwnershipInterval[], rejections: readonly RejectedCall[]): string[] =>
  rejections.flatMap(({ action, token, status, start, end }) => {
    const interval = intervals.find(({ grant }) => grant.token === token)
    if (!interval || start < interval.from) return []
    // A name that may be active rightly rejects a commit or a renewal. Only an active one is updated.
    const isAlwaysAllowed = action === 'release' || action === 'update'
    const until = isAlwaysAllowed ? interval.to : Math.min(interval.to, interval.mayBeActiveFrom)
    if (end >= until) return []
    return [`owner rejected: ${action} got ${status} at ${formatTime(end)}; ${describeInterval(interval)}`]
  })

const findSharedTokens = (operations: readonly NameOperation[]): string[] => {
  const keys = new Map<string, string>()
  return operations.flatMap(operation => {
    if (operation.kind !== 'grant') return []
    const { token, callId, name } = operation
    const other = keys.get(token) ?? callId
    keys.set(token, other)
    return other === callId ? [] : [`duplicate token: ${other} and ${callId} got the same for ${name}`]
  })
}

/** At most one owner per name at any time, according to the acknowledged responses. */
export const findOwnershipViolations = (operations: readonly NameOperation[]): string[] => [
  ...findSharedTokens(operations),
  ...[...groupOperations(operations).values()].flatMap(nameOperations => {
    const intervals = toOwnershipIntervals(nameOperations)
    const rejections = nameOperations.filter(operation => operation.kind === 'rejection')
    return [...findOverlaps(intervals), ...findWrongRejections(intervals, rejections)]
  }),
]

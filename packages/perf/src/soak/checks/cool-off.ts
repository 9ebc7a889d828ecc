import type { NameOperation, Span } from './operations.ts'
import { groupOperations, type OwnershipInterval, toOwnershipIntervals } from './ownership.ts'

/** The time during which a name certainly was in the cool-off of its former holder. */
interface CoolOff extends Span {
  readonly name: string
  readonly token: string
}

const overlaps = (a: Span, b: Span): boolean => a.start <= b.end && b.start <= a.end

const toCoolOffs = (
  operations: readonly NameOperation[],
  intervals: readonly OwnershipInterval[],
  coolOffMs: number,
): CoolOff[] => {
  const releases = operations.filter(operation => operation.kind === 'release')
  return releases.flatMap(release => {
    const holder = intervals.find(
      ({ grant, commitment, to }) =>
        commitment &&
        commitment.end <= release.start &&
        (release.token === grant.token || (release.token === null && to === release.start)),
    )
    if (!holder || !release.isAnswered) return []
    const coolOff = {
      name: release.name,
      token: holder.grant.token,
      start: release.end,
      end: release.start + coolOffMs,
    }
    // Another release can be that of a client which took the name back in the meantime.
    const whole = { start: release.start, end: coolOff.end }
    const isUnclear = operations.some(
      other =>
        (other.kind === 'lift' && overlaps(other, whole)) ||
        (other.kind === 'release' && other !== release && overlaps(other, whole)),
    )
    return isUnclear ? [] : [coolOff]
  })
}

const formatTime = (time: number): string => new Date(time).toISOString()

/** During the cool-off of a released active name, only its former holder gets it, and always does. */
export const findCoolOffViolations = (operations: readonly NameOperation[], coolOffMs: number): string[] =>
  [...groupOperations(operations).values()].flatMap(own => {
    const intervals = toOwnershipIntervals(own)
    return toCoolOffs(own, intervals, coolOffMs).flatMap(({ name, token, start, end }) => {
      const grants = own.flatMap(operation => (operation.kind === 'grant' ? [operation] : []))
      const others = grants.filter(
        ({ reservedAt, formerToken }) => reservedAt > start && reservedAt < end && formerToken !== token,
      )
      const isTaken = grants.some(grant => overlaps(grant, { start, end }))
      const rejections = own.filter(
        operation =>
          operation.kind === 'rejection' &&
          operation.action === 'take-back' &&
          operation.token === token &&
          operation.start > start &&
          operation.end < end,
      )
      const coolOff = `the cool-off of ${name} from ${formatTime(start)} to ${formatTime(end)}`
      return [
        ...others.map(({ owner, reservedAt }) => `${owner} got a name at ${formatTime(reservedAt)} in ${coolOff}`),
        ...(isTaken ? [] : rejections.map(call => `take-back rejected at ${formatTime(call.end)} in ${coolOff}`)),
      ]
    })
  })

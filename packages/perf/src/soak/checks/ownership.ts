import type { Denial, NameOperation } from './operations.ts'
import { byName, type OwnershipInterval, toOwnershipIntervals } from './ownership-intervals.ts'

const at = (time: number): string => (Number.isFinite(time) ? new Date(time).toISOString() : 'now')

export const describeTenure = ({ grant, from, to }: OwnershipInterval): string =>
  `${grant.owner} had ${grant.name} from ${at(from)} to ${at(to)} at least`

const overlaps = (tenures: readonly OwnershipInterval[]): string[] => {
  const faults: string[] = []
  let longest: OwnershipInterval | undefined
  for (const tenure of tenures) {
    if (longest && tenure.from < longest.to && tenure.to > tenure.from)
      faults.push(`two owners: ${describeTenure(longest)}; ${describeTenure(tenure)}`)
    if (!longest || tenure.to > longest.to) longest = tenure
  }
  return faults
}

const wrongDenials = (tenures: readonly OwnershipInterval[], denials: readonly Denial[]): string[] =>
  denials.flatMap(({ verb, token, status, start, end }) => {
    const tenure = tenures.find(one => one.grant.token === token)
    // Whoever has committed already, or may have, is rightly refused another commit.
    const until = verb === 'release' ? tenure?.to : Math.min(tenure?.to ?? 0, tenure?.mayBeActiveFrom ?? 0)
    if (!tenure || start < tenure.from || end >= (until ?? 0)) return []
    return [`an owner was refused: ${verb} answered ${status} at ${at(end)}; ${describeTenure(tenure)}`]
  })

const sharedTokens = (acts: readonly NameOperation[]): string[] => {
  const first = new Map<string, string>()
  return acts.flatMap(act => {
    if (act.kind !== 'grant') return []
    const other = first.get(act.token)
    if (other === undefined) first.set(act.token, act.intention)
    return other === undefined || other === act.intention
      ? []
      : [`one token twice: ${other} and ${act.intention} were given the same for ${act.name}`]
  })
}

/** One owner a name: by acknowledged answers alone. */
export const ownershipFaults = (acts: readonly NameOperation[]): string[] => [
  ...sharedTokens(acts),
  ...[...byName(acts).values()].flatMap(ofName => {
    const tenures = toOwnershipIntervals(ofName)
    return [
      ...overlaps(tenures),
      ...wrongDenials(
        tenures,
        ofName.filter(act => act.kind === 'denial'),
      ),
    ]
  }),
]

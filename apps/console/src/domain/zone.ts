import type { ConvergeResponse, RepublishResponse, ZoneStatus } from '@pool/contract'
import { formatCount, pickVerb } from './text.ts'

export interface ZoneHealth {
  readonly tone: 'ok' | 'busy' | 'bad' | 'idle'
  readonly text: string
}

export const countFailing = ({ failing }: Pick<ZoneStatus, 'failing'>): number =>
  failing.reduce((sum, { names }) => sum + names, 0)

/** The health of a zone in one word; the worst condition counts. */
export const describeZone = (zone: Pick<ZoneStatus, 'stopped' | 'failing' | 'pendingNames' | 'status'>): ZoneHealth => {
  if (zone.stopped !== undefined) return { tone: 'bad', text: 'stopped' }
  if (countFailing(zone) > 0) return { tone: 'bad', text: 'failing' }
  if (zone.pendingNames > 0) return { tone: 'busy', text: 'pending' }
  return zone.status === 'former' ? { tone: 'idle', text: 'not written' } : { tone: 'ok', text: 'in sync' }
}

const causeTexts: Readonly<Record<string, string>> = {
  provider: 'the provider does not respond',
  zone: 'the zone cannot be written',
  rejected: 'the provider rejects the records',
  'foreign-record': 'a record of another writer is in the way',
  'database-older': 'the zone is stopped',
  'other-installation': 'the zone is stopped',
  imported: 'the zone is stopped',
}

/** How many names fail, and why: `2 (the zone is stopped)`. A cause that this version does not know is shown as it is. */
export const describeFailing = ({ failing }: Pick<ZoneStatus, 'failing'>): string =>
  failing.length === 0
    ? '0'
    : failing.map(({ cause, names }) => `${names.toLocaleString('en')} (${causeTexts[cause] ?? cause})`).join(', ')

const stopTexts: Readonly<Record<NonNullable<ZoneStatus['stopped']>, string>> = {
  'database-older': 'The database is older than the last write to the zone: it may be an older backup.',
  'other-installation': 'Another database wrote the zone last: two installations may manage it.',
  imported: 'The database was imported, and the zone was not compared with it yet.',
}

/** Why nothing is written to a stopped zone. */
export const describeStop = (cause: NonNullable<ZoneStatus['stopped']>): string => stopTexts[cause]

export type Trust = 'database' | 'zone'

/** What a resume does. */
export const describeTrust = (trust: Trust): readonly string[] =>
  trust === 'database'
    ? [
        'The zone gets the records of the database.',
        'Orphans, which the database has no name for, are removed.',
        'Writes to the zone start again.',
      ]
    : [
        'The database gets the names and the addresses of the zone.',
        'Names that the zone does not have become free.',
        'No client has a valid token of a name that changes: only an operator can change it afterwards.',
        'Writes to the zone start again.',
      ]

/** What a converge changes. */
export const describeConverge = ({
  changeCount,
  conflictCount,
}: Pick<ConvergeResponse, 'changeCount' | 'conflictCount'>): string =>
  [
    changeCount === 0
      ? 'The zone has the desired records: nothing is written.'
      : `${formatCount(changeCount, 'record set')} ${pickVerb(changeCount, 'changes', 'change')}.`,
    'Names that failed are tried again immediately.',
    ...(conflictCount === 0
      ? []
      : [
          `${formatCount(conflictCount, 'name')} with a record of another writer in the way ${pickVerb(conflictCount, 'is', 'are')} not changed.`,
        ]),
  ].join(' ')

/** What a republish changes. */
export const describeRepublish = ({
  nameCount,
  changeCount,
}: Pick<RepublishResponse, 'nameCount' | 'changeCount'>): string =>
  nameCount === 0
    ? 'Every active name has the records of the current template: there is nothing to republish.'
    : `${formatCount(nameCount, 'active name')} ${pickVerb(nameCount, 'gets', 'get')} the records of the current template: ${formatCount(changeCount, 'record set')} ${pickVerb(changeCount, 'changes', 'change')}.`

/** What a resume settles. */
export const describeDifferences = (count: number): string =>
  count === 0
    ? 'The zone and the database agree.'
    : `${formatCount(count, 'name')} ${pickVerb(count, 'differs and changes', 'differ and change')} like this:`

import type { NamePlan, PlannedChange } from '@pool/contract'
import type { Session } from '../session.ts'
import type { Column } from '../table.ts'
import { formatDuration } from '../values.ts'

/** One line of a comparison of a zone with its desired records. */
export interface DiffRow {
  readonly action: string
  readonly name: string
  readonly type?: string
  readonly ttl?: number | undefined
  readonly detail?: string | undefined
}

const diffColumns: readonly Column<DiffRow>[] = [
  {
    header: 'ACTION',
    value: ({ action }) => action,
    colour: ({ action }) =>
      action === 'upsert' || action === 'publish' ? 'green' : action === 'delete' ? 'red' : 'yellow',
  },
  { header: 'NAME', value: ({ name }) => name },
  { header: 'TYPE', value: ({ type }) => type },
  { header: 'TTL', value: ({ ttl }) => ttl },
  { header: 'DETAIL', value: ({ detail }) => detail },
]

export const toChangeRow = ({ action, name, type, ttl, values }: PlannedChange): DiffRow => ({
  action,
  name,
  type,
  ttl,
  detail: values?.join(', '),
})

export const diffView = (pool: string, empty: string) => ({
  key: 'changes',
  columns: diffColumns,
  toName: ({ name }: DiffRow) => name,
  empty: `${pool}: ${empty}`,
})

export const noteMore = (session: Session, shown: number, count: number, what: string): void => {
  if (count > shown) session.output.note(`${count} ${what}; the first ${shown} are listed.`)
}

/** Shows what a request would do to a name, as the service plans it. */
export const showNamePlan = async (session: Session, plan: NamePlan): Promise<void> => {
  const fqdn = `${plan.subdomain}.${plan.poolDomain}`
  await session.output.report(plan, plan.changes.map(toChangeRow), diffView(fqdn, 'no records change.'))
  const coolOff =
    plan.coolOffSeconds === undefined
      ? ''
      : `; for ${formatDuration(plan.coolOffSeconds * 1_000)} only its former client can reserve it`
  session.output.note(
    plan.from === plan.to ? `${fqdn} stays ${plan.from}.` : `${fqdn} goes from ${plan.from} to ${plan.to}${coolOff}.`,
  )
  const others = plan.deletedRecords.length
  if (others > 0) session.output.note(`${others} of the deleted record sets were not written by this service.`)
  if (plan.conflict !== undefined) session.output.note(`The records are not written: ${plan.conflict}`)
  if (plan.unavailable !== undefined) {
    session.output.note(
      `The zone could not be read (${plan.unavailable}); the changes are those that the database knows.`,
    )
  }
}

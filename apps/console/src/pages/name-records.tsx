import type { NameRecords } from '@pool/contract'
import type { Resource } from '../api/resource.ts'
import { diffRecords, type RecordDiff, type RecordSet } from '../domain/record-diff.ts'
import { formatCount, pickVerb, toVisibleText } from '../domain/text.ts'
import { EmptyState, Loaded, Notice } from '../ui/feedback.tsx'
import { Panel } from '../ui/shell.tsx'
import { RelativeTime } from '../ui/time.tsx'

const signs = { same: ' ', added: '+', removed: '−', changed: '~' } as const
const meanings = {
  same: 'equal',
  added: 'missing in the zone',
  removed: 'is deleted next',
  changed: 'differs',
} as const

const Values = ({ record }: { readonly record: RecordSet | undefined }) =>
  record === undefined ? (
    <span class="muted">none</span>
  ) : (
    <>
      {record.data.map(value => (
        <div key={value}>
          <code>{toVisibleText(value)}</code>
        </div>
      ))}
      <span class="muted">TTL {record.ttl} s</span>
    </>
  )

const DiffRow = ({ row }: { readonly row: RecordDiff }) => (
  <tr class={row.kind}>
    <td class="sign">
      <span aria-hidden="true">{signs[row.kind]}</span>
      <span class="visually-hidden">{row.isForeign ? 'of another writer' : meanings[row.kind]}</span>
    </td>
    <td>
      <div>
        <code>
          {toVisibleText(row.name)} {row.type}
        </code>
        {row.isForeign && <div class="muted">of another writer, not changed</div>}
      </div>
    </td>
    <td data-label="Desired">
      <div>{row.isForeign ? <span class="muted">–</span> : <Values record={row.desired} />}</div>
    </td>
    <td data-label="In the zone">
      <div>
        <Values record={row.found} />
      </div>
    </td>
  </tr>
)

interface RecordTableProps {
  readonly records: NameRecords
  /** Why the records could not be published, which the page shows already. */
  readonly shownReason: string | undefined
}

const RecordTable = ({ records: { desired, found, changes, conflict }, shownReason }: RecordTableProps) => {
  const rows = diffRecords(desired, found, changes)
  const differences = rows.filter(({ kind }) => kind !== 'same').length
  return (
    <>
      <div class="body">
        {conflict !== undefined && (
          <Notice tone="bad" title="The service writes nothing: another record is in the way.">
            {conflict !== shownReason && <div>{toVisibleText(conflict)}</div>}
          </Notice>
        )}
        {conflict === undefined && rows.length > 0 && (
          <p>
            {differences === 0
              ? 'The zone has the desired records.'
              : `${formatCount(differences, 'record set')} ${pickVerb(differences, 'differs', 'differ')}. The service repairs the zone at the next sync.`}
          </p>
        )}
      </div>
      {rows.length === 0 ? (
        <EmptyState title="The name has no records, and the zone has none below it." />
      ) : (
        <div class="table-frame">
          <table class="diff" aria-label="Desired records and records in the zone">
            <thead>
              <tr>
                <th scope="col" class="sign">
                  <span class="visually-hidden">Change</span>
                </th>
                <th scope="col">Record</th>
                <th scope="col">Desired</th>
                <th scope="col">In the zone</th>
              </tr>
            </thead>
            <tbody>
              {rows.map(row => (
                <DiffRow key={`${row.name} ${row.type}`} row={row} />
              ))}
            </tbody>
          </table>
        </div>
      )}
    </>
  )
}

interface NameRecordsPanelProps extends Pick<RecordTableProps, 'shownReason'> {
  readonly records: Resource<NameRecords>
}

/** The desired records next to those that the zone has now. */
export const NameRecordsPanel = ({ records, shownReason }: NameRecordsPanelProps) => (
  <Panel
    title="DNS records"
    hasPadding={false}
    aside={
      <div class="actions">
        {records.data && (
          <span class="muted">
            read <RelativeTime at={records.data.readAt} />
          </span>
        )}
        <button type="button" class="plain" onClick={records.reload}>
          Read again
        </button>
      </div>
    }
  >
    <Loaded resource={records}>{data => <RecordTable records={data} shownReason={shownReason} />}</Loaded>
  </Panel>
)

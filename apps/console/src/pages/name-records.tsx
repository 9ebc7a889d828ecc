import type { NameRecords } from '@pool/contract'
import type { Resource } from '../api/resource.ts'
import { diffRecords, type RecordDiff, type RecordSet } from '../domain/record-diff.ts'
import { toVisibleText } from '../domain/visible-text.ts'
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
    <td class="sign" data-label="Change">
      <span aria-hidden="true">{signs[row.kind]}</span>
      <span class="visually-hidden">{row.isForeign ? 'of another writer' : meanings[row.kind]}</span>
    </td>
    <td data-label="Record">
      <div>
        <code>{toVisibleText(row.name)}</code> {row.type}
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

const RecordTable = ({ records: { desired, found, changes, conflict } }: { readonly records: NameRecords }) => {
  const rows = diffRecords(desired, found, changes)
  const differences = rows.filter(({ kind }) => kind !== 'same').length
  return (
    <>
      <div class="body">
        {conflict !== undefined && (
          <Notice tone="bad" title="The service writes nothing: another record is in the way.">
            <div>{toVisibleText(conflict)}</div>
          </Notice>
        )}
        {conflict === undefined && (
          <p>
            {differences === 0
              ? 'The zone has the desired records.'
              : `${differences} record set${differences === 1 ? '' : 's'} differ. The service repairs them at the next sync.`}
          </p>
        )}
      </div>
      {rows.length === 0 ? (
        <EmptyState title="The name has no records, and the zone has none below it." />
      ) : (
        <table class="diff collapsing" aria-label="Desired records and records in the zone">
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
      )}
    </>
  )
}

/** The desired records next to those that the zone has now. */
export const NameRecordsPanel = ({ records }: { readonly records: Resource<NameRecords> }) => (
  <Panel
    title="Records: desired against the zone"
    hasPadding={false}
    aside={
      <span class="muted">
        {records.data && (
          <>
            read <RelativeTime at={records.data.readAt} />{' '}
          </>
        )}
        <button type="button" class="plain" onClick={records.reload}>
          Read again
        </button>
      </span>
    }
  >
    <Loaded resource={records}>{data => <RecordTable records={data} />}</Loaded>
  </Panel>
)

import type { FormerRecordsResponse } from '@pool/contract'
import { client } from '../api/client.ts'
import { useResource } from '../api/resource.ts'
import { toVisibleText } from '../domain/visible-text.ts'
import { type Column, DataTable } from '../ui/data-table.tsx'
import { Loaded } from '../ui/feedback.tsx'
import { Pager } from '../ui/pager.tsx'
import { Panel } from '../ui/shell.tsx'
import { usePages } from '../ui/use-pages.ts'

type FormerRecord = FormerRecordsResponse['records'][number]

const columns: readonly Column<FormerRecord>[] = [
  { id: 'name', header: 'Name', class: 'label', cell: ({ name }) => <code>{toVisibleText(name)}</code> },
  { id: 'type', header: 'Type', cell: ({ type }) => type },
  {
    id: 'data',
    header: 'Last written',
    cell: ({ data }) =>
      data === undefined ? <span class="muted">unknown</span> : <code>{toVisibleText(data.join(', '))}</code>,
  },
  { id: 'provider', header: 'Provider', cell: ({ provider }) => provider },
]

/** The records that an earlier DNS provider still has; nothing if there are none. */
export const FormerRecordsPanel = ({ pool }: { readonly pool: string }) => {
  const pages = usePages(pool)
  const { cursor } = pages
  const records = useResource(signal => client.listFormerRecords({ domain: pool, cursor }, { signal }), {
    key: `${pool} ${cursor ?? ''}`,
    topics: ['zones'],
    keepsPrevious: true,
  })
  // Few zones have such records: no space is kept for them.
  if (records.data === undefined && records.error === undefined) return null
  return (
    <Loaded resource={records}>
      {data =>
        data.records.length === 0 && pages.page === 1 ? null : (
          <Panel title="Records at an earlier provider" hasPadding={false}>
            <div class="body">
              <p>
                The zone was moved to another DNS provider. The earlier one keeps these records until you delete them
                there. Delete them when no resolver asks it any more.
              </p>
            </div>
            <DataTable
              label="Records at an earlier provider"
              columns={columns}
              rows={data.records}
              rowKey={({ provider, name, type }) => `${provider} ${name} ${type}`}
            />
            <Pager pages={pages} count={data.records.length} unit="record set" nextCursor={data.nextCursor} />
          </Panel>
        )
      }
    </Loaded>
  )
}

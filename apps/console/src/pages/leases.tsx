import { client } from '../api/client.ts'
import { readLeases } from '../api/leases.ts'
import { useSettings } from '../api/session.tsx'
import { type LeaseRow, toLeaseTone } from '../domain/lease.ts'
import { toVisibleText } from '../domain/visible-text.ts'
import type { Column } from '../ui/data-table.tsx'
import { EmptyState } from '../ui/feedback.tsx'
import { TextField } from '../ui/field.tsx'
import { ListPanel, usePagedList } from '../ui/list-panel.tsx'
import { Link, useRouter } from '../ui/router.tsx'
import { Page } from '../ui/shell.tsx'
import { Status } from '../ui/status.tsx'
import { Countdown, Time } from '../ui/time.tsx'
import { useInterval } from '../ui/use-interval.ts'
import { useSearchText } from '../ui/use-search-text.ts'

/** The witness has no events for this service. */
const REFRESH_MS = 5_000

const columns: readonly Column<LeaseRow>[] = [
  {
    id: 'slot',
    header: 'Slot',
    cell: ({ slot }) => <Link to={{ page: 'lease', slot }}>{toVisibleText(slot)}</Link>,
    sortValue: ({ slot }) => slot,
  },
  {
    id: 'state',
    header: 'State',
    cell: row => <Status {...toLeaseTone(row)} />,
    sortValue: row => toLeaseTone(row).text,
  },
  {
    id: 'holder',
    header: 'Holder',
    cell: ({ holder }) => (holder === '' ? <span class="muted">none</span> : <code>{toVisibleText(holder)}</code>),
    sortValue: ({ holder }) => holder,
  },
  {
    id: 'left',
    header: 'Time left',
    class: 'number',
    cell: ({ endsAt }) =>
      endsAt === undefined ? <span class="muted">–</span> : <Countdown endsAt={endsAt} expiredText="expired" />,
    sortValue: ({ endsAt }) => endsAt ?? 0,
  },
  { id: 'acquired', header: 'Held since', cell: ({ acquiredAt }) => <Time at={acquiredAt} /> },
  {
    id: 'generation',
    header: 'Generation',
    class: 'number',
    cell: ({ generation }) => generation.toLocaleString('en'),
    sortValue: ({ generation }) => generation,
  },
  {
    id: 'waiters',
    header: 'Waiters',
    class: 'number',
    cell: ({ waiters }) => waiters,
    sortValue: ({ waiters }) => waiters,
  },
]

/** Which lease is held where. */
export const LeasesPage = ({ prefix }: { readonly prefix: string }) => {
  const { hasWitness } = useSettings()
  const { replace } = useRouter()
  const search = useSearchText(prefix, text => replace({ page: 'leases', prefix: text }))
  const leases = usePagedList((cursor, signal) => readLeases(client, { prefix, cursor, signal }), {
    key: prefix,
    isEnabled: hasWitness,
  })
  useInterval(leases.reload, REFRESH_MS)
  if (!hasWitness) {
    return (
      <Page title="Leases">
        <EmptyState title="No witness is configured.">
          Set PDM_WITNESS_URL and PDM_WITNESS_TOKEN_FILE to show its leases here.
        </EmptyState>
      </Page>
    )
  }
  return (
    <Page title="Leases" lead="A new slot can be missing from this list for a minute. The state of each slot is exact.">
      <search class="filters">
        <TextField
          class="wide"
          type="search"
          label="Slots that begin with"
          placeholder="region-pair/"
          value={search.text}
          onInput={search.setText}
        />
      </search>
      <ListPanel
        title="Slots"
        label="Leases"
        list={leases}
        toRows={({ rows }) => rows}
        columns={columns}
        rowKey={({ slot }) => slot}
        unit="slot"
        renderEmpty={() => (
          <EmptyState title={prefix === '' ? 'No slot exists yet.' : 'No slot begins with this text.'}>
            A controller acquires a lease with PUT /lease/&lt;slot&gt;, or with poolctl.
          </EmptyState>
        )}
      />
    </Page>
  )
}

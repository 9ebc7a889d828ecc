import { formatTarget, type ListedName } from '@pool/contract'
import { searchNames } from '../api/client.ts'
import { useSettings } from '../api/session.tsx'
import { type NameFilter, NO_FILTER, parseNameSearch, type Route } from '../domain/route.ts'
import { toVisibleText } from '../domain/text.ts'
import type { Column } from '../ui/data-table.tsx'
import { DnsStatusText, NameStatus } from '../ui/facts.tsx'
import { CellReason, EmptyState } from '../ui/feedback.tsx'
import { SelectField, TextField, useSearchText } from '../ui/field.tsx'
import { ListPanel, usePagedList } from '../ui/list-panel.tsx'
import { Link, useRouter } from '../ui/router.tsx'
import { Page } from '../ui/shell.tsx'
import { RelativeTime, Time } from '../ui/time.tsx'

const PAGE_SIZE = 50

const toNameRoute = ({ poolDomain, subdomain }: ListedName): Route => ({ page: 'name', pool: poolDomain, subdomain })

const columns: readonly Column<ListedName>[] = [
  {
    header: 'Name',
    class: 'name',
    cell: name => (
      <Link to={toNameRoute(name)}>
        {name.subdomain}
        <span class="muted">.{name.poolDomain}</span>
      </Link>
    ),
  },
  { header: 'State', cell: name => <NameStatus state={name.state} /> },
  {
    header: 'DNS',
    class: 'text',
    cell: ({ state, dns }) => (
      <>
        <DnsStatusText state={state} dns={dns} />
        {dns?.detail && <CellReason text={dns.detail} />}
      </>
    ),
  },
  {
    header: 'Target',
    class: 'nowrap',
    cell: name => (formatTarget(name) ? <code>{formatTarget(name)}</code> : <span class="muted">–</span>),
  },
  {
    header: 'Created by',
    class: 'creator',
    cell: ({ createdBy }) => (createdBy ? toVisibleText(createdBy) : <span class="muted">–</span>),
  },
  {
    header: 'Reserved',
    cell: ({ reservedAt }) => <Time at={reservedAt} />,
  },
  {
    header: 'Ends',
    cell: ({ expiresAt, availableAt }) => <RelativeTime at={expiresAt ?? availableAt} />,
  },
]

const stateOptions = [
  ['', 'every state'],
  ['reserved', 'reserved'],
  ['active', 'active'],
  ['cooling-off', 'cooling off'],
  ['held', 'held'],
] as const
const dnsOptions = [
  ['', 'every status'],
  ['pending', 'pending'],
  ['published', 'published'],
  ['failing', 'failing'],
] as const

const Filters = ({
  filter,
  onChange,
}: {
  readonly filter: NameFilter
  readonly onChange: (filter: NameFilter) => void
}) => {
  const { managedDomains, drainingDomains } = useSettings()
  const search = useSearchText(filter.text, text => onChange({ ...filter, text }))
  const change = (part: Partial<NameFilter>) => onChange({ ...filter, ...part, text: search.take() })
  return (
    <search class="filters">
      <TextField
        class="wide"
        type="search"
        label="Search"
        placeholder="acme, 203.0.113 or by:ops"
        hint="The beginning of a name, FQDN, address or by:creator."
        value={search.text}
        onInput={search.setText}
      />
      <SelectField
        label="Pool"
        value={filter.pool}
        options={[['', 'every pool'], ...[...managedDomains, ...drainingDomains].map(pool => [pool, pool] as const)]}
        onChange={pool => change({ pool })}
      />
      <SelectField
        label="State"
        value={filter.state}
        options={stateOptions}
        onChange={state => change({ state: state as NameFilter['state'] })}
      />
      <SelectField
        label="DNS"
        value={filter.dns}
        options={dnsOptions}
        onChange={dns => change({ dns: dns as NameFilter['dns'] })}
      />
    </search>
  )
}

/** The names that are not free, as the service finds them. */
export const NamesPage = ({ filter }: { readonly filter: NameFilter }) => {
  const { replace } = useRouter()
  const key = JSON.stringify(filter)
  const names = usePagedList(
    (cursor, signal) => searchNames(parseNameSearch(filter), { cursor, limit: PAGE_SIZE, signal }),
    { key, topics: ['names'] },
  )
  const isFiltered = key !== JSON.stringify(NO_FILTER)
  return (
    <Page title="Names">
      <Filters filter={filter} onChange={changed => replace({ page: 'names', filter: changed })} />
      <ListPanel
        title="Names"
        aside={
          <span class="muted" role="status">
            {names.isStale && names.error === undefined && 'Searching …'}
          </span>
        }
        list={names}
        toRows={page => page.names}
        columns={columns}
        rowKey={({ subdomain, poolDomain }) => `${subdomain}.${poolDomain}`}
        unit="name"
        renderEmpty={({ nextCursor }) => {
          if (nextCursor !== undefined) {
            return (
              <EmptyState title="No name matches so far.">
                Few names of this search match, and it has not read all of them.
                <div class="actions">
                  <button type="button" onClick={() => names.pages.next(nextCursor)}>
                    Search further
                  </button>
                </div>
              </EmptyState>
            )
          }
          return (
            <EmptyState title={isFiltered ? 'No name matches.' : 'Every name is free.'}>
              {isFiltered ? (
                <div class="actions">
                  <button type="button" onClick={() => replace({ page: 'names', filter: NO_FILTER })}>
                    Clear the filters
                  </button>
                </div>
              ) : (
                'A client reserves a name with POST /api/v1/pool/{domain}/reserve or poolctl; a new deployment reserves its own.'
              )}
            </EmptyState>
          )
        }}
      />
    </Page>
  )
}

import { formatTarget, type HistoryEntry, type NameAction, type NameDetails } from '@pool/contract'
import { useState } from 'preact/hooks'
import { client } from '../api/client.ts'
import { type Resource, useResource } from '../api/resource.ts'
import { describeActor, describeEvent, toEventTone } from '../domain/history.ts'
import { NO_FILTER } from '../domain/route.ts'
import { formatCount, toVisibleText } from '../domain/text.ts'
import { useDialog } from '../ui/dialog.tsx'
import { DeploymentStatusText, DnsStatusText, Facts, NameStatus } from '../ui/facts.tsx'
import { EmptyState, ErrorNotice, Loaded, Notice, useToast } from '../ui/feedback.tsx'
import { Link } from '../ui/router.tsx'
import { Page, Panel } from '../ui/shell.tsx'
import { RelativeTime, Time, Timeline, type TimelineEntry } from '../ui/time.tsx'
import { NameActionDialog, nameActionLabels } from './name-actions.tsx'
import { NameRecordsPanel } from './name-records.tsx'
import { NameTokensPanel } from './name-tokens.tsx'

const PAGE_SIZE = 50
const UUID = /^[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}$/

const Origin = ({ entry }: { readonly entry: HistoryEntry }) => {
  const { actor, createdBy, event, requestId } = entry
  const isDeployment = actor === 'deployment' && requestId !== undefined && UUID.test(requestId)
  return (
    <>
      <div class="detail">
        {describeActor(entry)}
        {isDeployment && (
          <>
            {' '}
            <Link to={{ page: 'deployment', id: requestId }}>{requestId.slice(0, 8)}</Link>
          </>
        )}
        {event === 'reserved' && createdBy !== '' && ` for ${toVisibleText(createdBy)}`}
      </div>
      {requestId && !isDeployment && (
        <div class="detail">
          Request ID <code>{toVisibleText(requestId)}</code>
        </div>
      )}
    </>
  )
}

const toTimelineEntry = (entry: HistoryEntry): TimelineEntry => ({
  title: describeEvent(entry),
  at: entry.at,
  tone: toEventTone(entry.event),
  details: (
    <>
      {entry.detail && <div>{toVisibleText(entry.detail)}</div>}
      {entry.deletedRecords?.map(({ name, type, data }) => (
        <div key={`${name} ${type}`} class="detail">
          deleted{' '}
          <code>
            {toVisibleText(name)} {type} {toVisibleText(data.join(', '))}
          </code>
        </div>
      ))}
      <Origin entry={entry} />
    </>
  ),
})

/** The whole history of a name, newest first. */
const NameTimeline = ({ pool, subdomain }: { readonly pool: string; readonly subdomain: string }) => {
  const [limit, setLimit] = useState(PAGE_SIZE)
  const history = useResource(signal => client.readHistory({ domain: pool, sub: subdomain, limit }, { signal }), {
    key: String(limit),
    topics: ['names'],
    keepsPrevious: true,
  })
  return (
    <Panel title="History">
      <Loaded resource={history}>
        {({ entries, nextCursor }) =>
          entries.length === 0 ? (
            <EmptyState title="The name has no history.">
              An entry appears when a client reserves the name. Old entries are deleted after the retention time.
            </EmptyState>
          ) : (
            <>
              <Timeline entries={entries.map(toTimelineEntry)} />
              {nextCursor !== undefined && (
                <div class="actions">
                  <button type="button" onClick={() => setLimit(limit + PAGE_SIZE)}>
                    Show earlier entries
                  </button>
                </div>
              )}
            </>
          )
        }
      </Loaded>
    </Panel>
  )
}

const actionsByState: Readonly<Record<NameDetails['state'], readonly NameAction[]>> = {
  free: [],
  reserved: ['release'],
  active: ['update', 'release'],
  'cooling-off': ['lift-cool-off'],
  held: [],
}
const NameFacts = ({ name }: { readonly name: NameDetails }) => (
  <Facts
    facts={{
      State: <NameStatus state={name.state} />,
      DNS: <DnsStatusText state={name.state} dns={name.dns} />,
      Target: formatTarget(name) && <code>{formatTarget(name)}</code>,
      'Created by':
        name.createdBy !== undefined &&
        (name.createdBy === '' ? <span class="muted">not stated</span> : toVisibleText(name.createdBy)),
      Reserved: name.reservedAt && (
        <>
          <Time at={name.reservedAt} />
          {name.renewalCount ? `, ${formatCount(name.renewalCount, 'renewal')}` : ''}
        </>
      ),
      Committed: name.committedAt && <Time at={name.committedAt} />,
      Expires: name.expiresAt && <RelativeTime at={name.expiresAt} />,
      'Free for every client': name.availableAt && <RelativeTime at={name.availableAt} />,
      Deployment: name.deployment && (
        <>
          <Link to={{ page: 'deployment', id: name.deployment.id }}>{name.deployment.id.slice(0, 8)}</Link>{' '}
          <DeploymentStatusText status={name.deployment.status} />
        </>
      ),
    }}
  />
)

const FailureNotice = ({ name }: { readonly name: NameDetails }) =>
  name.dns?.status === 'failing' ? (
    <Notice tone="bad" title="The records could not be published.">
      {name.dns.detail && <div>{toVisibleText(name.dns.detail)}</div>}
      <div>
        The service retries {name.nextAttemptAt ? <RelativeTime at={name.nextAttemptAt} /> : 'automatically'}. To retry
        immediately, converge the <Link to={{ page: 'zone', pool: name.poolDomain }}>zone</Link>.
      </div>
    </Notice>
  ) : null

/** A name: its state, its records in the database and in the zone, its history, its deployment. */
export const NamePage = ({ pool, subdomain }: { readonly pool: string; readonly subdomain: string }) => {
  const toast = useToast()
  const path = { domain: pool, subdomain }
  const details: Resource<NameDetails> = useResource(signal => client.describeName(path, { signal }), {
    key: 'details',
    topics: ['names'],
  })
  const records = useResource(signal => client.compareNameRecords(path, { signal }), {
    key: 'records',
    topics: ['names'],
  })
  const fqdn = `${subdomain}.${pool}`
  const { open, dialog } = useDialog<NameAction>((kind, close) => (
    <NameActionDialog
      kind={kind}
      pool={pool}
      subdomain={subdomain}
      currentTarget={details.data ?? {}}
      found={records.data?.found ?? []}
      onClose={close}
      onDone={text => {
        toast(text)
        details.reload()
        records.reload()
      }}
    />
  ))
  const actions = actionsByState[details.data?.state ?? 'free'].map(kind => (
    <button key={kind} type="button" class={kind === 'update' ? '' : 'danger'} onClick={() => open(kind)}>
      {nameActionLabels[kind]}
    </button>
  ))
  return (
    <Page
      title={fqdn}
      crumbs={<Link to={{ page: 'names', filter: { ...NO_FILTER, pool } }}>Names</Link>}
      actions={actions}
    >
      {details.data === undefined && details.error !== undefined ? (
        <ErrorNotice error={details.error} onRetry={details.reload} />
      ) : (
        <div class="columns two">
          <div class="stack">
            <Panel title="State">
              <Loaded resource={details}>
                {name => (
                  <>
                    <FailureNotice name={name} />
                    <NameFacts name={name} />
                  </>
                )}
              </Loaded>
            </Panel>
            <NameRecordsPanel records={records} shownReason={details.data?.dns?.detail} />
            {(details.data?.state === 'active' || details.data?.state === 'reserved') && (
              <NameTokensPanel pool={pool} subdomain={subdomain} />
            )}
          </div>
          <NameTimeline pool={pool} subdomain={subdomain} />
        </div>
      )}
      {dialog}
    </Page>
  )
}

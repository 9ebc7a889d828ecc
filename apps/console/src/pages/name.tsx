import type { NameAction, NameDetails } from '@pool/contract'
import { client } from '../api/client.ts'
import { type Resource, useResource } from '../api/resource.ts'
import { formatCount } from '../domain/count.ts'
import { NO_FILTER } from '../domain/route.ts'
import { toVisibleText } from '../domain/visible-text.ts'
import { Facts } from '../ui/facts.tsx'
import { ErrorNotice, Loaded, Notice, useToast } from '../ui/feedback.tsx'
import { Link } from '../ui/router.tsx'
import { Page, Panel } from '../ui/shell.tsx'
import { DeploymentStatusText, DnsStatusText, NameStatus } from '../ui/status.tsx'
import { RelativeTime, Time } from '../ui/time.tsx'
import { useDialog } from '../ui/use-dialog.tsx'
import { NameActionDialog, nameActionLabels } from './name-actions.tsx'
import { NameRecordsPanel } from './name-records.tsx'
import { NameTimeline } from './name-timeline.tsx'

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
      Address: name.loadBalancerIP && <code>{name.loadBalancerIP}</code>,
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

interface NamePageProps {
  readonly pool: string
  readonly subdomain: string
}

/** A name: its state, its records in the database and in the zone, its history, its deployment. */
export const NamePage = ({ pool, subdomain }: NamePageProps) => {
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
      currentAddress={details.data?.loadBalancerIP ?? ''}
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
          </div>
          <NameTimeline pool={pool} subdomain={subdomain} />
        </div>
      )}
      {dialog}
    </Page>
  )
}

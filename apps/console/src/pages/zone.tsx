import type { ConvergeResponse, ListedName, Orphan, ZoneStatus } from '@pool/contract'
import { useState } from 'preact/hooks'
import { client } from '../api/client.ts'
import { searchNames } from '../api/names.ts'
import { useResource } from '../api/resource.ts'
import { formatCount } from '../domain/count.ts'
import { toPlanRows } from '../domain/record-diff.ts'
import { NO_FILTER } from '../domain/route.ts'
import { toVisibleText } from '../domain/visible-text.ts'
import { countFailing, describeFailing, describeStop, describeZone } from '../domain/zone.ts'
import { type Column, DataTable } from '../ui/data-table.tsx'
import { EmptyState, Loaded, Notice, useToast } from '../ui/feedback.tsx'
import { PlanTable } from '../ui/plan-table.tsx'
import { Link } from '../ui/router.tsx'
import { Page, Panel } from '../ui/shell.tsx'
import { Status } from '../ui/status.tsx'
import { RelativeTime } from '../ui/time.tsx'
import { ConvergeDialog, OrphansDialog, RepublishDialog, ResumeDialog } from './zone-actions.tsx'
import { FormerRecordsPanel } from './zone-former-records.tsx'

const FAILING_NAMES = 20

const ZoneFacts = ({ zone }: { readonly zone: ZoneStatus }) => {
  const { tone, text } = describeZone(zone)
  return (
    <dl class="facts">
      <dt>State</dt>
      <dd>
        <Status tone={tone} text={text} />
      </dd>
      <dt>Pending names</dt>
      <dd>
        {zone.pendingNames.toLocaleString('en')}
        {zone.oldestPendingAt && (
          <>
            , the oldest <RelativeTime at={zone.oldestPendingAt} />
          </>
        )}
      </dd>
      <dt>Failing names</dt>
      <dd>{describeFailing(zone)}</dd>
      <dt>Last in sync</dt>
      <dd>{zone.syncedAt ? <RelativeTime at={zone.syncedAt} /> : 'never'}</dd>
      <dt>Last drift check</dt>
      <dd>{zone.driftCheckedAt ? <RelativeTime at={zone.driftCheckedAt} /> : 'never'}</dd>
      {zone.nextDriftCheckAt && (
        <>
          <dt>Next drift check</dt>
          <dd>
            <RelativeTime at={zone.nextDriftCheckAt} />
          </dd>
        </>
      )}
    </dl>
  )
}

const failingColumns: readonly Column<ListedName>[] = [
  {
    id: 'name',
    header: 'Name',
    class: 'label',
    cell: ({ poolDomain, subdomain }) => <Link to={{ page: 'name', pool: poolDomain, subdomain }}>{subdomain}</Link>,
  },
  { id: 'reason', header: 'Reason', cell: ({ dns }) => toVisibleText(dns?.detail ?? '') },
]

const FailingPanel = ({ pool }: { readonly pool: string }) => {
  const names = useResource(
    signal => searchNames({ pool, dns: 'failing' }, { cursor: undefined, limit: FAILING_NAMES, signal }),
    { key: pool, topics: ['names', 'zones'] },
  )
  return (
    <Panel
      title="Names that fail to publish"
      hasPadding={false}
      aside={<Link to={{ page: 'names', filter: { ...NO_FILTER, pool, dns: 'failing' } }}>Search them</Link>}
    >
      <Loaded resource={names}>
        {data =>
          data.names.length === 0 ? (
            <EmptyState title="Every name is published, or waits for its first attempt." />
          ) : (
            <DataTable
              label="Names that fail to publish"
              columns={failingColumns}
              rows={data.names}
              rowKey={({ subdomain }) => subdomain}
            />
          )
        }
      </Loaded>
    </Panel>
  )
}

interface Conflict {
  readonly pool: string
  readonly subdomain: string
  readonly detail: string
}

const conflictColumns: readonly Column<Conflict>[] = [
  {
    id: 'name',
    header: 'Name',
    class: 'label',
    cell: ({ pool, subdomain }) => <Link to={{ page: 'name', pool, subdomain }}>{subdomain}</Link>,
  },
  { id: 'reason', header: 'Reason', cell: ({ detail }) => toVisibleText(detail) },
]

const orphanColumns: readonly Column<Orphan>[] = [
  { id: 'name', header: 'Name', class: 'label', cell: ({ subdomain }) => subdomain },
  { id: 'address', header: 'Address', cell: ({ loadBalancerIP }) => <code>{loadBalancerIP}</code> },
  {
    id: 'records',
    header: 'Records',
    cell: ({ records, otherRecordCount }) =>
      `${records.length} of the template${otherRecordCount === 0 ? '' : `, ${formatCount(otherRecordCount, 'other')}`}`,
  },
]

const more = (shown: number, total: number): string => (total > shown ? ` The first ${shown} are shown.` : '')

interface DryRunProps {
  readonly result: ConvergeResponse
  readonly onConverge: () => void
  readonly onOrphans: (action: 'adopt' | 'remove') => void
}

/** What a converge would do, as a diff; and what it leaves alone. */
const DryRun = ({ result, onConverge, onOrphans }: DryRunProps) => (
  <>
    <Panel
      title={`Changes (${result.changeCount.toLocaleString('en')})`}
      hasPadding={false}
      aside={
        result.changeCount > 0 && (
          <button type="button" class="primary" onClick={onConverge}>
            Converge
          </button>
        )
      }
    >
      {result.changes.length === 0 ? (
        <EmptyState title="The zone has the desired records." />
      ) : (
        <>
          <PlanTable label="Changes to the zone" rows={toPlanRows(result.changes)} />
          <p class="pager">A converge writes +, and deletes −.{more(result.changes.length, result.changeCount)}</p>
        </>
      )}
    </Panel>
    <Panel title={`Conflicts (${result.conflictCount.toLocaleString('en')})`} hasPadding={false}>
      {result.conflicts.length === 0 ? (
        <EmptyState title="No record of another writer is in the way." />
      ) : (
        <DataTable
          label="Conflicts"
          columns={conflictColumns}
          rows={result.conflicts.map(conflict => ({ ...conflict, pool: result.poolDomain }))}
          rowKey={({ subdomain }) => subdomain}
        />
      )}
    </Panel>
    <Panel
      title={`Orphans (${result.orphanCount.toLocaleString('en')})`}
      hasPadding={false}
      aside={
        result.orphanCount > 0 && (
          <div class="actions">
            <button type="button" onClick={() => onOrphans('adopt')}>
              Adopt
            </button>
            <button type="button" class="danger" onClick={() => onOrphans('remove')}>
              Remove
            </button>
          </div>
        )
      }
    >
      {result.orphans.length === 0 ? (
        <EmptyState title="Every name in the zone has an allocation." />
      ) : (
        <DataTable
          label="Orphans"
          columns={orphanColumns}
          rows={result.orphans}
          rowKey={({ subdomain }) => subdomain}
        />
      )}
    </Panel>
  </>
)

type ZoneAction = 'converge' | 'republish' | 'resume' | 'adopt' | 'remove'

/** A zone: its health, what a converge would change, and the operator's actions. */
export const ZonePage = ({ pool }: { readonly pool: string }) => {
  const toast = useToast()
  const [action, setAction] = useState<ZoneAction | null>(null)
  const [isComparing, setIsComparing] = useState(false)
  const zones = useResource(signal => client.listZones({ signal }), { key: 'zones', topics: ['zones', 'names'] })
  const dryRun = useResource(signal => client.convergeZone({ domain: pool, dryRun: true }, { signal }), {
    key: 'dry-run',
    isEnabled: isComparing,
  })
  const zone = zones.data?.zones.find(status => status.zone === pool)
  const stopped = zone?.stopped
  const closeAndReload = (text: string) => {
    toast(text)
    zones.reload()
    dryRun.reload()
  }
  const dialog = { pool, onClose: () => setAction(null), onDone: closeAndReload }
  return (
    <Page
      title={pool}
      crumbs={<Link to={{ page: 'zones' }}>Zones</Link>}
      actions={
        zone !== undefined && (
          <>
            <button type="button" onClick={() => (isComparing ? dryRun.reload() : setIsComparing(true))}>
              {isComparing && (dryRun.isLoading ? 'Comparing …' : 'Compare again')}
              {!isComparing && 'Compare with the zone'}
            </button>
            <button type="button" onClick={() => setAction('converge')} disabled={stopped !== undefined}>
              Converge
            </button>
            <button type="button" onClick={() => setAction('republish')}>
              Republish
            </button>
            {stopped !== undefined && (
              <button type="button" class="primary" onClick={() => setAction('resume')}>
                Resume
              </button>
            )}
          </>
        )
      }
    >
      {stopped !== undefined && (
        <Notice tone="bad" title="Nothing is written to this zone until an operator resumes it.">
          <div>{describeStop(stopped)}</div>
          <div>Resume shows the differences for each answer to the question which side is right, and settles them.</div>
        </Notice>
      )}
      <Loaded resource={zones}>
        {({ provider }) => (
          <>
            {provider.circuitOpen && (
              <Notice tone="bad" title={`Calls to the DNS provider (${provider.kind}) are suspended after failures.`}>
                <div>This replica probes the provider and continues when it responds. Check the provider.</div>
              </Notice>
            )}
            {zone === undefined ? (
              <EmptyState title="The service has no zone of this name.">
                <div class="actions">
                  <Link class="button" to={{ page: 'zones' }}>
                    Show the zones
                  </Link>
                </div>
              </EmptyState>
            ) : (
              <div class="columns two">
                <Panel title="Health">
                  <ZoneFacts zone={zone} />
                </Panel>
                {countFailing(zone) > 0 && <FailingPanel pool={pool} />}
              </div>
            )}
          </>
        )}
      </Loaded>
      {zone !== undefined && isComparing && (
        <Loaded resource={dryRun}>
          {result => <DryRun result={result} onConverge={() => setAction('converge')} onOrphans={setAction} />}
        </Loaded>
      )}
      {zone !== undefined && !isComparing && (
        <Panel title="Changes">
          <p class="muted">
            Compare with the zone to see what a converge would write and delete, records in the way, and orphans. This
            reads the whole zone from the provider and changes nothing.
          </p>
        </Panel>
      )}
      {zone !== undefined && <FormerRecordsPanel pool={pool} />}
      {action === 'converge' && <ConvergeDialog {...dialog} />}
      {action === 'republish' && <RepublishDialog {...dialog} />}
      {action === 'resume' && <ResumeDialog {...dialog} />}
      {(action === 'adopt' || action === 'remove') && <OrphansDialog {...dialog} action={action} />}
    </Page>
  )
}

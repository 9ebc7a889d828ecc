import {
  type ConvergeResponse,
  type FormerRecordsResponse,
  formatTarget,
  type Orphan,
  type ZoneStatus,
} from '@pool/contract'
import type { ComponentChildren, ComponentType } from 'preact'
import { useState } from 'preact/hooks'
import { client, searchNames } from '../api/client.ts'
import { useResource } from '../api/resource.ts'
import { toPlanRows } from '../domain/record-diff.ts'
import { NO_FILTER } from '../domain/route.ts'
import { formatCount, toVisibleText } from '../domain/text.ts'
import { countFailing, describeFailing, describeStop, describeZone } from '../domain/zone.ts'
import { type Column, DataTable, PlanTable } from '../ui/data-table.tsx'
import { useDialog } from '../ui/dialog.tsx'
import { Facts, Status } from '../ui/facts.tsx'
import { EmptyState, Loaded, Notice, useToast } from '../ui/feedback.tsx'
import { Pager, usePages } from '../ui/list-panel.tsx'
import { Link } from '../ui/router.tsx'
import { Page, Panel } from '../ui/shell.tsx'
import { RelativeTime } from '../ui/time.tsx'
import {
  AdoptDialog,
  ConvergeDialog,
  RemoveDialog,
  RepublishDialog,
  ResumeDialog,
  type ZoneDialogProps,
} from './zone-actions.tsx'
import { SuspensionNotice } from './zones.tsx'

type FormerRecord = FormerRecordsResponse['records'][number]

const formerColumns: readonly Column<FormerRecord>[] = [
  { header: 'Name', class: 'label', cell: ({ name }) => <code>{toVisibleText(name)}</code> },
  { header: 'Type', cell: ({ type }) => type },
  {
    header: 'Last written',
    cell: ({ data }) =>
      data === undefined ? <span class="muted">unknown</span> : <code>{toVisibleText(data.join(', '))}</code>,
  },
  { header: 'Provider', cell: ({ provider }) => provider },
]

/** The records that an earlier DNS provider still has; nothing if there are none. */
const FormerRecordsPanel = ({ pool }: { readonly pool: string }) => {
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
              columns={formerColumns}
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

const FAILING_NAMES = 20

const ZoneFacts = ({ zone }: { readonly zone: ZoneStatus }) => (
  <Facts
    facts={{
      State: <Status {...describeZone(zone)} />,
      'Pending names': (
        <>
          {zone.pendingNames.toLocaleString('en')}
          {zone.oldestPendingAt && (
            <>
              , the oldest <RelativeTime at={zone.oldestPendingAt} />
            </>
          )}
        </>
      ),
      'Failing names': describeFailing(zone),
      'Last in sync': <RelativeTime at={zone.syncedAt} absent="never" />,
      'Last drift check': <RelativeTime at={zone.driftCheckedAt} absent="never" />,
      'Next drift check': zone.nextDriftCheckAt && <RelativeTime at={zone.nextDriftCheckAt} />,
    }}
  />
)

/** A name that cannot be written, and why. */
interface Obstacle {
  readonly pool: string
  readonly subdomain: string
  readonly detail: string
}

const obstacleColumns: readonly Column<Obstacle>[] = [
  {
    header: 'Name',
    class: 'label',
    cell: ({ pool, subdomain }) => <Link to={{ page: 'name', pool, subdomain }}>{subdomain}</Link>,
  },
  { header: 'Reason', cell: ({ detail }) => toVisibleText(detail) },
]

const ObstacleTable = ({ label, rows }: { readonly label: string; readonly rows: readonly Obstacle[] }) => (
  <DataTable label={label} columns={obstacleColumns} rows={rows} rowKey={({ subdomain }) => subdomain} />
)

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
            <ObstacleTable
              label="Names that fail to publish"
              rows={data.names.map(({ subdomain, dns }) => ({ pool, subdomain, detail: dns?.detail ?? '' }))}
            />
          )
        }
      </Loaded>
    </Panel>
  )
}

const orphanColumns: readonly Column<Orphan>[] = [
  { header: 'Name', class: 'label', cell: ({ subdomain }) => subdomain },
  { header: 'Target', cell: orphan => <code>{formatTarget(orphan)}</code> },
  {
    header: 'Records',
    cell: ({ records, otherRecordCount }) =>
      `${records.length} of the template${otherRecordCount === 0 ? '' : `, ${formatCount(otherRecordCount, 'other')}`}`,
  },
]

const more = (shown: number, total: number): string => (total > shown ? ` The first ${shown} are shown.` : '')

type ZoneDialog = ComponentType<ZoneDialogProps>

interface DryRunProps {
  readonly result: ConvergeResponse
  readonly onOpen: (dialog: ZoneDialog) => void
}

interface CountPanelProps {
  readonly title: string
  readonly count: number
  /** What it means that there are none. */
  readonly none: string
  readonly actions?: ComponentChildren
  readonly children: ComponentChildren
}

const CountPanel = ({ title, count, none, actions, children }: CountPanelProps) => (
  <Panel
    title={`${title} (${count.toLocaleString('en')})`}
    hasPadding={false}
    aside={count > 0 && <div class="actions">{actions}</div>}
  >
    {count === 0 ? <EmptyState title={none} /> : children}
  </Panel>
)

/** What a converge would do, as a diff; and what it leaves alone. */
const DryRun = ({ result, onOpen }: DryRunProps) => (
  <>
    <CountPanel
      title="Changes"
      count={result.changeCount}
      none="The zone has the desired records."
      actions={
        <button type="button" class="primary" onClick={() => onOpen(ConvergeDialog)}>
          Converge
        </button>
      }
    >
      <PlanTable label="Changes to the zone" rows={toPlanRows(result.changes)} />
      <p class="pager">A converge writes +, and deletes −.{more(result.changes.length, result.changeCount)}</p>
    </CountPanel>
    <CountPanel title="Conflicts" count={result.conflictCount} none="No record of another writer is in the way.">
      <ObstacleTable
        label="Conflicts"
        rows={result.conflicts.map(conflict => ({ ...conflict, pool: result.poolDomain }))}
      />
    </CountPanel>
    <CountPanel
      title="Orphans"
      count={result.orphanCount}
      none="Every name in the zone has an allocation."
      actions={
        <>
          <button type="button" onClick={() => onOpen(AdoptDialog)}>
            Adopt
          </button>
          <button type="button" class="danger" onClick={() => onOpen(RemoveDialog)}>
            Remove
          </button>
        </>
      }
    >
      <DataTable label="Orphans" columns={orphanColumns} rows={result.orphans} rowKey={({ subdomain }) => subdomain} />
    </CountPanel>
  </>
)

/** A zone: its health, what a converge would change, and the operator's actions. */
export const ZonePage = ({ pool }: { readonly pool: string }) => {
  const toast = useToast()
  const [isComparing, setIsComparing] = useState(false)
  const zones = useResource(signal => client.listZones({ signal }), { key: 'zones', topics: ['zones', 'names'] })
  const dryRun = useResource(signal => client.convergeZone({ domain: pool, dryRun: true }, { signal }), {
    key: 'dry-run',
    isEnabled: isComparing,
  })
  const zone = zones.data?.zones.find(status => status.zone === pool)
  const stopped = zone?.stopped
  const { open, dialog } = useDialog<ZoneDialog>((ZoneDialog, close) => (
    <ZoneDialog
      pool={pool}
      onClose={close}
      onDone={text => {
        toast(text)
        zones.reload()
        dryRun.reload()
      }}
    />
  ))
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
            <button type="button" onClick={() => open(ConvergeDialog)} disabled={stopped !== undefined}>
              Converge
            </button>
            <button type="button" onClick={() => open(RepublishDialog)}>
              Republish
            </button>
            {stopped !== undefined && (
              <button type="button" class="primary" onClick={() => open(ResumeDialog)}>
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
            <SuspensionNotice provider={provider} />
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
        <Loaded resource={dryRun}>{result => <DryRun result={result} onOpen={open} />}</Loaded>
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
      {dialog}
    </Page>
  )
}

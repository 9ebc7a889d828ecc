import type { Overview } from '@pool/contract'
import { useState } from 'preact/hooks'
import { client } from '../api/client.ts'
import { useResource } from '../api/resource.ts'
import { useSettings } from '../api/session.tsx'
import { describeReplica, findLatest, formatGrowth, formatLatest, hasEnded } from '../domain/overview.ts'
import { NO_FILTER } from '../domain/route.ts'
import { type Column, DataTable } from '../ui/data-table.tsx'
import { Status } from '../ui/facts.tsx'
import { EmptyState, Loaded } from '../ui/feedback.tsx'
import { Plot } from '../ui/plot.tsx'
import { Link } from '../ui/router.tsx'
import { Page, Panel } from '../ui/shell.tsx'
import { RelativeTime, Time } from '../ui/time.tsx'

const RANGES = [
  [60, '1 hour'],
  [360, '6 hours'],
  [1_440, '1 day'],
  [10_080, '1 week'],
] as const
const POINTS = 120

type Replica = Overview['replicas'][number]

const formatNumber = (value: number | undefined, digits = 1): string =>
  value === undefined ? '–' : value.toLocaleString('en', { maximumFractionDigits: digits })

const replicaColumns: readonly Column<Replica>[] = [
  {
    header: 'Replica',
    cell: ({ id }) => <code title={id}>{id.slice(0, 8)}</code>,
    sortValue: ({ id }) => id,
  },
  {
    header: 'State',
    cell: replica => <Status {...describeReplica(replica, Date.now())} />,
  },
  { header: 'Version', cell: ({ version }) => version, sortValue: ({ version }) => version },
  { header: 'Node.js', cell: ({ node }) => node, sortValue: ({ node }) => node },
  {
    header: 'Requests/s',
    class: 'number',
    cell: replica => (hasEnded(replica, Date.now()) ? '–' : formatNumber(findLatest(replica.requestsPerSecond))),
    sortValue: ({ requestsPerSecond }) => findLatest(requestsPerSecond) ?? -1,
  },
  {
    header: 'Event loop busy',
    class: 'number',
    cell: replica => {
      const latest = findLatest(replica.eventLoopUtilization)
      return latest === undefined || hasEnded(replica, Date.now()) ? '–' : `${Math.round(latest * 100)} %`
    },
    sortValue: ({ eventLoopUtilization }) => findLatest(eventLoopUtilization) ?? -1,
  },
  { header: 'Started', cell: ({ startedAt }) => <Time at={startedAt} />, sortValue: r => r.startedAt },
  { header: 'Last sample', cell: ({ lastSeenAt }) => <RelativeTime at={lastSeenAt} /> },
]

interface PoolPlotsProps extends Pick<Overview, 'times' | 'pools'> {
  /** The time that the series cover, in words. */
  readonly range: string
}

const PoolPlots = ({ times, pools, range }: PoolPlotsProps) => (
  <div class="plots">
    {pools.map(({ poolDomain, active, reserved, coolingOff, held }) => (
      <div key={poolDomain}>
        <Plot
          title={poolDomain}
          unit=""
          headline={`${formatLatest(active, '')} active`}
          times={times}
          series={[
            { label: 'active', values: active },
            { label: 'reserved', values: reserved },
            { label: 'cooling off', values: coolingOff },
            ...(findLatest(held) ? [{ label: 'held', values: held }] : []),
          ]}
        />
        <div class="actions">
          <span class="muted">
            {formatGrowth(active)} active in {range}
          </span>
          <Link
            to={{ page: 'names', filter: { ...NO_FILTER, pool: poolDomain } }}
            aria-label={`Names of ${poolDomain}`}
          >
            Names
          </Link>
          <Link to={{ page: 'zone', pool: poolDomain }} aria-label={`Zone ${poolDomain}`}>
            Zone
          </Link>
        </div>
      </div>
    ))}
  </div>
)

const ServicePlots = ({ times, requests, dns, deployments }: Overview) => (
  <div class="plots">
    <Plot
      title="Requests"
      unit="/s"
      times={times}
      series={[
        { label: 'all', values: requests.perSecond },
        { label: 'errors (5xx)', values: requests.errorsPerSecond, isFault: true },
      ]}
    />
    <Plot
      title="Mean response time"
      unit="ms"
      times={times}
      series={[{ label: 'mean', values: requests.meanMilliseconds }]}
    />
    <Plot
      title="Unpublished names"
      unit=""
      times={times}
      series={[
        { label: 'pending', values: dns.pendingNames },
        { label: 'failing', values: dns.failingNames, isFault: true },
      ]}
    />
    <Plot title="Deployment runs" unit="" times={times} series={[{ label: 'active', values: deployments.active }]} />
  </div>
)

/** Pools, rates, errors and replicas over the last hour to week. */
export const OverviewPage = () => {
  const [minutes, setMinutes] = useState<number>(60)
  const { hasWitness, managedDomains } = useSettings()
  const overview = useResource(signal => client.readOverview({ minutes, points: POINTS }, { signal }), {
    key: String(minutes),
    topics: ['samples'],
    keepsPrevious: true,
  })
  const range = RANGES.find(([value]) => value === minutes)?.[1] ?? ''
  const ranges = (
    <fieldset class="segmented">
      <legend class="visually-hidden">Time range</legend>
      <div>
        {RANGES.map(([value, label]) => (
          <button key={value} type="button" aria-pressed={value === minutes} onClick={() => setMinutes(value)}>
            {label}
          </button>
        ))}
      </div>
    </fieldset>
  )
  return (
    <Page title="Overview" actions={ranges}>
      <Loaded resource={overview}>
        {data => (
          <>
            <Panel title={`Pools (${managedDomains.length})`}>
              {data.pools.length === 0 ? (
                <EmptyState title="No samples exist yet.">
                  Each replica stores one every 10 s: wait for the first. If none comes, check the log of the replicas.
                </EmptyState>
              ) : (
                <PoolPlots {...data} range={range} />
              )}
            </Panel>
            <Panel title="Service">
              <ServicePlots {...data} />
            </Panel>
            <Panel title={`Replicas (${data.replicas.length})`} hasPadding={false}>
              {data.replicas.length === 0 ? (
                <EmptyState title="No replica has stored a sample in this time.">
                  Check the log of the replicas.
                </EmptyState>
              ) : (
                <DataTable label="Replicas" columns={replicaColumns} rows={data.replicas} rowKey={({ id }) => id} />
              )}
            </Panel>
            {!hasWitness && (
              <p class="muted">Leases are not shown: PDM_WITNESS_URL is not set, see the configuration.</p>
            )}
          </>
        )}
      </Loaded>
    </Page>
  )
}

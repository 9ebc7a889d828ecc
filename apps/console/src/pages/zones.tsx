import type { ZoneStatus, ZonesResponse } from '@pool/contract'
import { client } from '../api/client.ts'
import { useResource } from '../api/resource.ts'
import { countFailing, describeFailing, describeZone } from '../domain/zone.ts'
import { type Column, DataTable } from '../ui/data-table.tsx'
import { Status } from '../ui/facts.tsx'
import { EmptyState, Loaded, Notice } from '../ui/feedback.tsx'
import { Link } from '../ui/router.tsx'
import { Page, Panel } from '../ui/shell.tsx'
import { RelativeTime } from '../ui/time.tsx'

const columns: readonly Column<ZoneStatus>[] = [
  {
    header: 'Zone',
    cell: ({ zone }) => <Link to={{ page: 'zone', pool: zone }}>{zone}</Link>,
    sortValue: ({ zone }) => zone,
  },
  {
    header: 'Health',
    cell: zone => <Status {...describeZone(zone)} />,
    sortValue: zone => describeZone(zone).text,
  },
  {
    header: 'Pending',
    class: 'number',
    cell: ({ pendingNames }) => pendingNames.toLocaleString('en'),
    sortValue: ({ pendingNames }) => pendingNames,
  },
  {
    header: 'Failing',
    class: 'text',
    cell: describeFailing,
    sortValue: countFailing,
  },
  { header: 'Last in sync', cell: ({ syncedAt }) => <RelativeTime at={syncedAt} absent="never" /> },
  {
    header: 'Last drift check',
    cell: ({ driftCheckedAt }) => <RelativeTime at={driftCheckedAt} absent="never" />,
  },
  { header: 'Configuration', cell: ({ status }) => status, sortValue: ({ status }) => status },
]

/** Why nothing is written to any zone. */
export const SuspensionNotice = ({ provider: { circuitOpen, kind } }: Pick<ZonesResponse, 'provider'>) =>
  circuitOpen && (
    <Notice tone="bad" title={`Calls to the DNS provider (${kind}) are suspended after failures.`}>
      <div>This replica probes the provider and continues when it responds. Check the provider.</div>
    </Notice>
  )

/** The health of every zone at a glance. */
export const ZonesPage = () => {
  const zones = useResource(signal => client.listZones({ signal }), { key: 'zones', topics: ['zones', 'names'] })
  return (
    <Page title="Zones">
      <Loaded resource={zones}>
        {({ provider, zones: list }) => (
          <>
            <SuspensionNotice provider={provider} />
            {!provider.writesZones && (
              <Notice tone="warn" title="This replica writes no zone: PDM_DNS_WRITES=off is set.">
                <div>Names stay pending until a replica that writes takes them. Remove the setting to write again.</div>
              </Notice>
            )}
            <Panel
              title={`Zones (${list.length.toLocaleString('en')})`}
              hasPadding={false}
              aside={
                <Status
                  tone={provider.circuitOpen ? 'bad' : 'ok'}
                  text={`DNS provider ${provider.kind}: calls ${provider.circuitOpen ? 'suspended' : 'allowed'}`}
                />
              }
            >
              {list.length === 0 ? (
                <EmptyState title="No zone exists.">
                  Set DNSPROVIDER_MANAGED_DOMAINS to the domains that the service allocates names in.
                </EmptyState>
              ) : (
                <DataTable label="Zones" columns={columns} rows={list} rowKey={({ zone }) => zone} />
              )}
            </Panel>
          </>
        )}
      </Loaded>
    </Page>
  )
}

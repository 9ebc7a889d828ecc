import { type Deployment, deploymentStatuses } from '@pool/contract'
import { client } from '../api/client.ts'
import { useResource } from '../api/resource.ts'
import { toVisibleText } from '../domain/visible-text.ts'
import { type Column, DataTable } from '../ui/data-table.tsx'
import { CellReason, EmptyState, Loaded } from '../ui/feedback.tsx'
import { SelectField } from '../ui/field.tsx'
import { Pager } from '../ui/pager.tsx'
import { Link, useRouter } from '../ui/router.tsx'
import { Page, Panel } from '../ui/shell.tsx'
import { DeploymentStatusText } from '../ui/status.tsx'
import { Time } from '../ui/time.tsx'
import { usePages } from '../ui/use-pages.ts'

const PAGE_SIZE = 50

const columns: readonly Column<Deployment>[] = [
  {
    id: 'fqdn',
    header: 'FQDN',
    class: 'name',
    cell: ({ id, sovereignFQDN }) => <Link to={{ page: 'deployment', id }}>{sovereignFQDN}</Link>,
  },
  {
    id: 'status',
    header: 'Status',
    class: 'text',
    cell: ({ status, error }) => (
      <>
        <DeploymentStatusText status={status} />
        {error && <CellReason text={error} />}
      </>
    ),
  },
  { id: 'organisation', header: 'Organisation', class: 'label', cell: ({ orgName }) => toVisibleText(orgName) },
  { id: 'providers', header: 'Providers', class: 'label', cell: ({ providers }) => providers.join(', ') },
  { id: 'region', header: 'Region', class: 'label', cell: ({ region }) => region },
  { id: 'started', header: 'Started', cell: ({ startedAt }) => <Time at={startedAt} /> },
  {
    id: 'finished',
    header: 'Finished',
    cell: ({ finishedAt }) => <Time at={finishedAt} />,
  },
]

/** The deployments, newest first. */
export const DeploymentsPage = ({ status }: { readonly status: string }) => {
  const { replace } = useRouter()
  const known = deploymentStatuses.find(value => value === status)
  const pages = usePages(status)
  const { cursor } = pages
  const deployments = useResource(
    signal => client.listDeployments({ limit: PAGE_SIZE, cursor, ...(known ? { status: known } : {}) }, { signal }),
    { key: `${status} ${cursor ?? ''}`, topics: ['deployments'], keepsPrevious: true },
  )
  return (
    <Page
      title="Deployments"
      actions={
        <Link class="button primary" to={{ page: 'new-deployment' }}>
          New deployment
        </Link>
      }
    >
      <search class="filters">
        <SelectField
          label="Status"
          value={known ?? ''}
          options={[['', 'every status'], ...deploymentStatuses.map(value => [value, value] as const)]}
          onChange={value => replace({ page: 'deployments', status: value })}
        />
      </search>
      <Panel title="Deployments" hasPadding={false}>
        <Loaded resource={deployments}>
          {data =>
            data.deployments.length === 0 ? (
              <EmptyState title={known ? `No deployment is ${known}.` : 'No deployment exists yet.'}>
                <div class="actions">
                  {known ? (
                    <button type="button" onClick={() => replace({ page: 'deployments', status: '' })}>
                      Show every status
                    </button>
                  ) : (
                    <Link class="button" to={{ page: 'new-deployment' }}>
                      Create one
                    </Link>
                  )}
                </div>
              </EmptyState>
            ) : (
              <>
                <DataTable label="Deployments" columns={columns} rows={data.deployments} rowKey={({ id }) => id} />
                <Pager pages={pages} count={data.deployments.length} unit="deployment" nextCursor={data.nextCursor} />
              </>
            )
          }
        </Loaded>
      </Panel>
    </Page>
  )
}

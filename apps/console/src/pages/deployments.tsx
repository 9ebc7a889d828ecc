import { type Deployment, deploymentStatuses } from '@pool/contract'
import { client } from '../api/client.ts'
import type { Route } from '../domain/route.ts'
import { toVisibleText } from '../domain/text.ts'
import type { Column } from '../ui/data-table.tsx'
import { DeploymentStatusText } from '../ui/facts.tsx'
import { CellReason, EmptyState } from '../ui/feedback.tsx'
import { SelectField, TextField, useSearchText } from '../ui/field.tsx'
import { ListPanel, usePagedList } from '../ui/list-panel.tsx'
import { Link, useRouter } from '../ui/router.tsx'
import { Page } from '../ui/shell.tsx'
import { Time } from '../ui/time.tsx'

const PAGE_SIZE = 50

type DeploymentsRoute = Extract<Route, { readonly page: 'deployments' }>

const columns: readonly Column<Deployment>[] = [
  {
    header: 'FQDN',
    class: 'name',
    cell: ({ id, sovereignFQDN }) => <Link to={{ page: 'deployment', id }}>{sovereignFQDN}</Link>,
  },
  {
    header: 'Status',
    class: 'text',
    cell: ({ status, error }) => (
      <>
        <DeploymentStatusText status={status} />
        {error && <CellReason text={error} />}
      </>
    ),
  },
  { header: 'Organisation', class: 'label', cell: ({ orgName }) => toVisibleText(orgName) },
  { header: 'Providers', class: 'label', cell: ({ providers }) => providers.join(', ') },
  { header: 'Region', class: 'label', cell: ({ region }) => region },
  { header: 'Started', cell: ({ startedAt }) => <Time at={startedAt} /> },
  {
    header: 'Finished',
    cell: ({ finishedAt }) => <Time at={finishedAt} />,
  },
]

/** The deployments, newest first. */
export const DeploymentsPage = ({ status, text = '' }: Pick<DeploymentsRoute, 'status' | 'text'>) => {
  const { replace } = useRouter()
  const search = useSearchText(text, typed => replace({ page: 'deployments', status, text: typed }))
  const known = deploymentStatuses.find(value => value === status)
  const deployments = usePagedList(
    (cursor, signal) =>
      client.listDeployments({ limit: PAGE_SIZE, cursor, status: known, search: text || undefined }, { signal }),
    { key: `${status} ${text}`, topics: ['deployments'] },
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
        <TextField
          class="wide"
          type="search"
          label="Search"
          hint="Part of an FQDN or of an organisation."
          value={search.text}
          onInput={search.setText}
        />
        <SelectField
          label="Status"
          value={known ?? ''}
          options={[['', 'every status'], ...deploymentStatuses.map(value => [value, value] as const)]}
          onChange={value => replace({ page: 'deployments', status: value, text: search.take() })}
        />
      </search>
      <ListPanel
        title="Deployments"
        list={deployments}
        toRows={page => page.deployments}
        columns={columns}
        rowKey={({ id }) => id}
        unit="deployment"
        renderEmpty={() => (
          <EmptyState
            title={text ? 'No deployment matches.' : known ? `No deployment is ${known}.` : 'No deployment exists yet.'}
          >
            <div class="actions">
              {known || text ? (
                <button type="button" onClick={() => replace({ page: 'deployments', status: '' })}>
                  Show every deployment
                </button>
              ) : (
                <Link class="button" to={{ page: 'new-deployment' }}>
                  Create one
                </Link>
              )}
            </div>
          </EmptyState>
        )}
      />
    </Page>
  )
}

import type { Deployment } from '@pool/contract'
import { useEffect } from 'preact/hooks'
import { client } from '../api/client.ts'
import { useResource } from '../api/resource.ts'
import { describeActor, describeDeploymentEvent, toEventTone } from '../domain/history.ts'
import { type DeploymentAction, findDeploymentActions, isRunning } from '../domain/plans.ts'
import { formatTitle } from '../domain/route.ts'
import { toVisibleText } from '../domain/visible-text.ts'
import { Facts } from '../ui/facts.tsx'
import { EmptyState, Loaded, LongText, Notice, useToast } from '../ui/feedback.tsx'
import { Link, useRouter } from '../ui/router.tsx'
import { Page, Panel } from '../ui/shell.tsx'
import { DeploymentStatusText } from '../ui/status.tsx'
import { Time } from '../ui/time.tsx'
import { Timeline } from '../ui/timeline.tsx'
import { useDialog } from '../ui/use-dialog.tsx'
import { DeploymentActionDialog } from './deployment-actions.tsx'
import { DeploymentLog } from './deployment-log.tsx'

const HISTORY_ENTRIES = 50

const actionLabels: Readonly<Record<DeploymentAction, string>> = {
  apply: 'Apply',
  destroy: 'Destroy',
  cancel: 'Cancel the run',
  delete: 'Delete',
  abandon: 'Abandon',
  unlock: 'Unlock the state',
}

const DeploymentFacts = ({ deployment }: { readonly deployment: Deployment }) => {
  const { status, orgName, orgEmail, objectStorageBucket, module, finishedAt, result } = deployment
  return (
    <Facts
      facts={{
        Status: <DeploymentStatusText status={status} />,
        Organisation: (
          <>
            {toVisibleText(orgName)}
            {orgEmail && <span class="muted"> {toVisibleText(orgEmail)}</span>}
          </>
        ),
        Providers: deployment.providers.join(', '),
        Region: deployment.region,
        Bucket: objectStorageBucket !== '' && (
          <>
            <code>{objectStorageBucket}</code> in {deployment.objectStorageRegion}
          </>
        ),
        Module: module && <code>{module}</code>,
        Started: <Time at={deployment.startedAt} />,
        Finished: finishedAt && <Time at={finishedAt} />,
        'Load balancer': result && <code>{result.loadBalancerIP}</code>,
        'Control plane': result?.controlPlaneIP && <code>{toVisibleText(result.controlPlaneIP)}</code>,
        ID: <code>{deployment.id}</code>,
      }}
    />
  )
}

const HistoryPanel = ({ id }: { readonly id: string }) => {
  const history = useResource(
    signal => client.readDeploymentHistory({ deployment: id, limit: HISTORY_ENTRIES }, { signal }),
    { key: id, topics: ['deployments'] },
  )
  return (
    <Panel title="History">
      <Loaded resource={history}>
        {({ entries }) =>
          entries.length === 0 ? (
            <EmptyState title="The deployment has no history." />
          ) : (
            <Timeline
              entries={entries.map(entry => ({
                title: describeDeploymentEvent(entry),
                at: entry.at,
                tone: toEventTone(entry.event),
                details: (
                  <>
                    {entry.detail && <LongText label="The reason" text={entry.detail} />}
                    <div class="detail">{describeActor(entry)}</div>
                  </>
                ),
              }))}
            />
          )
        }
      </Loaded>
    </Panel>
  )
}

/** A deployment with its live log and its actions. */
export const DeploymentPage = ({ id }: { readonly id: string }) => {
  const toast = useToast()
  const router = useRouter()
  const deployment = useResource(signal => client.getDeployment({ id }, { signal }), {
    key: id,
    topics: ['deployments'],
  })
  const { data } = deployment
  const fqdn = data?.sovereignFQDN
  const { open, dialog } = useDialog<DeploymentAction>(
    (action, close) =>
      data && (
        <DeploymentActionDialog
          action={action}
          deployment={data}
          onClose={close}
          onDone={(text, isGone) => {
            toast(text)
            if (isGone) router.open({ page: 'deployments', status: '' })
            else deployment.reload()
          }}
        />
      ),
  )
  // The address has only the id.
  useEffect(() => {
    if (fqdn !== undefined) document.title = formatTitle(fqdn)
  }, [fqdn])
  return (
    <Page
      title={fqdn ?? 'Deployment'}
      crumbs={<Link to={{ page: 'deployments', status: '' }}>Deployments</Link>}
      actions={
        data &&
        findDeploymentActions(data).map(kind => (
          <button
            key={kind}
            type="button"
            class={kind === 'apply' || kind === 'unlock' ? '' : 'danger'}
            onClick={() => open(kind)}
          >
            {actionLabels[kind]}
          </button>
        ))
      }
    >
      <Loaded resource={deployment}>
        {found => (
          <>
            {found.error && (
              <Notice tone="bad" title="The last operation failed.">
                <LongText label="The error" text={found.error} />
                <div>
                  The log below has the details. Apply again after the cause is gone, or destroy the deployment.
                </div>
              </Notice>
            )}
            <div class="columns two">
              <Panel title="Deployment">
                <DeploymentFacts deployment={found} />
              </Panel>
              <HistoryPanel id={id} />
            </div>
            <DeploymentLog id={id} runKey={isRunning(found) ? 'running' : 'ended'} onEnd={deployment.reload} />
          </>
        )}
      </Loaded>
      {dialog}
    </Page>
  )
}

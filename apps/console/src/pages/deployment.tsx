import type { Deployment, DeploymentHistoryEntry } from '@pool/contract'
import { useEffect, useState } from 'preact/hooks'
import { client } from '../api/client.ts'
import { useResource } from '../api/resource.ts'
import { describeActor, describeDeploymentEvent, toEventTone } from '../domain/history.ts'
import { type DeploymentAction, findDeploymentActions, isRunning } from '../domain/plans.ts'
import { formatTitle } from '../domain/route.ts'
import { toVisibleText } from '../domain/visible-text.ts'
import { EmptyState, Loaded, LongText, Notice, useToast } from '../ui/feedback.tsx'
import { Link, useRouter } from '../ui/router.tsx'
import { Page, Panel } from '../ui/shell.tsx'
import { DeploymentStatusText } from '../ui/status.tsx'
import { Time } from '../ui/time.tsx'
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

const DeploymentFacts = ({ deployment }: { readonly deployment: Deployment }) => (
  <dl class="facts">
    <dt>Status</dt>
    <dd>
      <DeploymentStatusText status={deployment.status} />
    </dd>
    <dt>Organisation</dt>
    <dd>
      {toVisibleText(deployment.orgName)}
      {deployment.orgEmail && <span class="muted"> {toVisibleText(deployment.orgEmail)}</span>}
    </dd>
    <dt>Providers</dt>
    <dd>{deployment.providers.join(', ')}</dd>
    <dt>Region</dt>
    <dd>{deployment.region}</dd>
    {deployment.objectStorageBucket !== '' && (
      <>
        <dt>Bucket</dt>
        <dd>
          <code>{deployment.objectStorageBucket}</code> in {deployment.objectStorageRegion}
        </dd>
      </>
    )}
    {deployment.module && (
      <>
        <dt>Module</dt>
        <dd>
          <code>{deployment.module}</code>
        </dd>
      </>
    )}
    <dt>Started</dt>
    <dd>
      <Time at={deployment.startedAt} />
    </dd>
    {deployment.finishedAt && (
      <>
        <dt>Finished</dt>
        <dd>
          <Time at={deployment.finishedAt} />
        </dd>
      </>
    )}
    {deployment.result && (
      <>
        <dt>Load balancer</dt>
        <dd>
          <code>{deployment.result.loadBalancerIP}</code>
        </dd>
        {deployment.result.controlPlaneIP && (
          <>
            <dt>Control plane</dt>
            <dd>
              <code>{toVisibleText(deployment.result.controlPlaneIP)}</code>
            </dd>
          </>
        )}
      </>
    )}
    <dt>ID</dt>
    <dd>
      <code>{deployment.id}</code>
    </dd>
  </dl>
)

const HistoryItem = ({ entry }: { readonly entry: DeploymentHistoryEntry }) => (
  <li class={toEventTone(entry.event)}>
    <div class="head">
      <strong>{describeDeploymentEvent(entry)}</strong>
      <span class="muted">
        <Time at={entry.at} />
      </span>
    </div>
    {entry.detail && <LongText label="The reason" text={entry.detail} />}
    <div class="detail">{describeActor(entry)}</div>
  </li>
)

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
            <ol class="timeline">
              {entries.map((entry, index) => (
                <HistoryItem key={`${entry.at} ${entry.event} ${entries.length - index}`} entry={entry} />
              ))}
            </ol>
          )
        }
      </Loaded>
    </Panel>
  )
}

/** A deployment with its live log and its actions. */
export const DeploymentPage = ({ id }: { readonly id: string }) => {
  const toast = useToast()
  const { open } = useRouter()
  const [action, setAction] = useState<DeploymentAction | null>(null)
  const deployment = useResource(signal => client.getDeployment({ id }, { signal }), {
    key: id,
    topics: ['deployments'],
  })
  const { data } = deployment
  const fqdn = data?.sovereignFQDN
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
            onClick={() => setAction(kind)}
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
            {action !== null && (
              <DeploymentActionDialog
                action={action}
                deployment={found}
                onClose={() => setAction(null)}
                onDone={(text, isGone) => {
                  toast(text)
                  if (isGone) open({ page: 'deployments', status: '' })
                  else deployment.reload()
                }}
              />
            )}
          </>
        )}
      </Loaded>
    </Page>
  )
}

import type { Deployment, DeploymentPlan } from '@pool/contract'
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks'
import { client } from '../api/client.ts'
import { useAction, useResource } from '../api/resource.ts'
import { describeActor, describeDeploymentEvent, type Run, toEventTone, toRuns } from '../domain/history.ts'
import {
  type DeploymentAction,
  describeDeploymentAction,
  describeRemedy,
  findDeploymentActions,
  isRunning,
  isUnfinished,
  toPlanTone,
} from '../domain/plans.ts'
import { formatTitle } from '../domain/route.ts'
import { toVisibleText } from '../domain/text.ts'
import { formatDuration } from '../domain/time.ts'
import { type Column, DataTable } from '../ui/data-table.tsx'
import { ConfirmDialog, useDialog } from '../ui/dialog.tsx'
import { CopyButton, DeploymentStatusText, Facts, Sentences } from '../ui/facts.tsx'
import { EmptyState, ErrorNotice, Loaded, LongText, Notice, useToast } from '../ui/feedback.tsx'
import { Choice, SecretFields, TextField, takeKeys } from '../ui/field.tsx'
import { Link, useRouter } from '../ui/router.tsx'
import { Page, Panel } from '../ui/shell.tsx'
import { Time, Timeline } from '../ui/time.tsx'
import { DeploymentLog } from './deployment-log.tsx'

interface DeploymentActionDialogProps {
  readonly action: DeploymentAction
  readonly deployment: Deployment
  readonly onClose: () => void
  /** `isGone`: the deployment exists no more. */
  readonly onDone: (text: string, isGone: boolean) => void
}

/** A plan as Terraform prints it. It gets the focus, which scrolls it into view and reads it. */
const PlanText = ({ text }: { readonly text: string }) => {
  const element = useRef<HTMLElement>(null)
  useLayoutEffect(() => element.current?.focus(), [])
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: the keyboard scrolls it.
    <section class="code" ref={element} tabIndex={0} aria-label="Plan">
      <pre>
        {text.split('\n').map((line, index) => (
          <span key={index} class={toPlanTone(line)}>
            {`${toVisibleText(line)}\n`}
          </span>
        ))}
      </pre>
    </section>
  )
}

/** States what an action does to a deployment, with Terraform's plan on request, and performs it. */
const DeploymentActionDialog = ({ action, deployment, onClose, onDone }: DeploymentActionDialogProps) => {
  const { id, sovereignFQDN: fqdn } = deployment
  const { title, confirmLabel, isDangerous, consequences, needsKeys, needsName } = describeDeploymentAction(
    action,
    deployment,
  )
  const [typedName, setTypedName] = useState('')
  const accessKey = useRef<HTMLInputElement>(null)
  const secretKey = useRef<HTMLInputElement>(null)
  const [shown, setShown] = useState<DeploymentPlan | null>(null)
  const [isForced, setIsForced] = useState(false)
  const [isRemoved, setIsRemoved] = useState(false)
  const operation = action === 'apply' || action === 'destroy' ? action : null
  // The inputs keep the keys until the dialog closes, because the action follows the plan.
  const readKeys = () =>
    needsKeys
      ? {
          objectStorageAccessKey: accessKey.current?.value.trim() ?? '',
          objectStorageSecretKey: secretKey.current?.value.trim() ?? '',
        }
      : {}
  const plan = useAction(async () => {
    if (operation === null) return
    setShown(await client.planDeployment({ id, operation, ...readKeys() }))
  })
  const toRun = () => ({
    ...{ id, ...(needsKeys ? takeKeys(accessKey, secretKey) : {}) },
    ...(shown?.planHash !== undefined && { planHash: shown.planHash }),
    ...(isRemoved && { unfinishedRemoved: true }),
  })
  const perform: Readonly<Record<DeploymentAction, () => Promise<readonly [text: string, isGone: boolean]>>> = {
    apply: async () => {
      await client.applyDeployment(toRun())
      return [`The apply of ${fqdn} has started.`, false]
    },
    destroy: async () => {
      await client.destroyDeployment(toRun())
      return [`The destroy of ${fqdn} has started.`, false]
    },
    cancel: async () => {
      // A browser repeats a request whose connection breaks, perhaps after the end of the run: this never deletes.
      await client.removeDeployment({ id, cancel: true, ...(isForced && { force: true }) })
      return [`The run of ${fqdn} is being cancelled.`, false]
    },
    delete: async () => {
      const remaining = await client.removeDeployment({ id })
      return [`The deployment ${fqdn} is deleted.`, remaining === undefined]
    },
    abandon: async () => {
      const remaining = await client.removeDeployment({ id, abandon: true })
      return [`The infrastructure of ${fqdn} is abandoned.`, remaining === undefined]
    },
    unlock: async () => {
      const { unlocked } = await client.unlockDeployment({ id })
      return [unlocked ? `The state of ${fqdn} is unlocked.` : 'The lock no longer existed.', false]
    },
  }
  return (
    <ConfirmDialog
      title={title}
      confirmLabel={shown?.planHash === undefined ? confirmLabel : `${confirmLabel} exactly this plan`}
      isDangerous={isDangerous}
      canConfirm={!needsName || typedName.trim() === fqdn}
      onConfirm={async () => onDone(...(await perform[action]()))}
      onClose={onClose}
    >
      <Sentences sentences={consequences} />
      {needsKeys && <SecretFields accessKey={accessKey} secretKey={secretKey} />}
      {operation !== null && (
        <div>
          {/* A button that is disabled would lose the focus. */}
          <button type="button" aria-disabled={plan.isRunning} onClick={plan.run}>
            {plan.isRunning ? 'Terraform plans …' : 'Show the plan'}
          </button>
        </div>
      )}
      {plan.error !== undefined && <ErrorNotice error={plan.error} />}
      {shown !== null && <PlanText text={shown.text} />}
      {action === 'cancel' && (
        <Choice isChecked={isForced} onChange={setIsForced}>
          End Terraform at once. What it is creating may then exist without being in the state.
        </Choice>
      )}
      {operation !== null && isUnfinished(deployment) && (
        <Choice isChecked={isRemoved} onChange={setIsRemoved}>
          What the error lists as created without being in the state does not exist, or I have deleted it at the
          provider.
        </Choice>
      )}
      {needsName && (
        <TextField label={`Type ${fqdn} to confirm`} value={typedName} onInput={setTypedName} class="wide" />
      )}
    </ConfirmDialog>
  )
}

const HISTORY_ENTRIES = 50

const actionLabels: Readonly<Record<DeploymentAction, string>> = {
  apply: 'Apply',
  destroy: 'Destroy',
  cancel: 'Cancel the run',
  delete: 'Delete',
  abandon: 'Abandon',
  unlock: 'Unlock the state',
}

/** The output of the module that is of any form. */
const Details = ({ value }: { readonly value: unknown }) => {
  const text = JSON.stringify(value, null, 2)
  return (
    <>
      <pre class="code">{text.split('\n').map(toVisibleText).join('\n')}</pre>
      <CopyButton text={text} what="the details" />
    </>
  )
}

const DeploymentFacts = ({ deployment }: { readonly deployment: Deployment }) => {
  const { status, orgName, orgEmail, objectStorageBucket, module, finishedAt, result } = deployment
  const details = result?.details
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
            {deployment.keptBucket !== undefined && <span class="muted"> kept after a destroy and a deletion</span>}
          </>
        ),
        Module: module && <code>{module}</code>,
        Started: <Time at={deployment.startedAt} />,
        Finished: finishedAt && <Time at={finishedAt} />,
        'Load balancer': result && <code>{result.loadBalancerIP}</code>,
        'Control plane': result?.controlPlaneIP && <code>{toVisibleText(result.controlPlaneIP)}</code>,
        Details: details !== undefined && <Details value={details} />,
        ID: <code>{deployment.id}</code>,
      }}
    />
  )
}

const runColumns: readonly Column<Run>[] = [
  { header: 'Run', cell: ({ operation }) => operation },
  { header: 'Requested', cell: ({ at }) => <Time at={at} /> },
  { header: 'Who', class: 'label', cell: ({ by }) => by },
  { header: 'Outcome', class: 'text', cell: ({ outcome }) => <DeploymentStatusText status={outcome} /> },
  { header: 'Duration', cell: ({ durationMs }) => (durationMs === undefined ? '–' : formatDuration(durationMs)) },
]

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
            <>
              <DataTable label="Runs" columns={runColumns} rows={toRuns(entries)} rowKey={({ at }) => at} />
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
            </>
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
                <div>The log below has the details. {describeRemedy(found)}</div>
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

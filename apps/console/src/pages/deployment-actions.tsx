import type { Deployment } from '@pool/contract'
import { useRef, useState } from 'preact/hooks'
import { client } from '../api/client.ts'
import { useAction } from '../api/resource.ts'
import { type DeploymentAction, describeDeploymentAction } from '../domain/plans.ts'
import { toVisibleText } from '../domain/visible-text.ts'
import { ConfirmDialog } from '../ui/dialog.tsx'
import { Sentences } from '../ui/facts.tsx'
import { ErrorNotice } from '../ui/feedback.tsx'
import { SecretFields, takeKeys } from '../ui/secret-fields.tsx'

interface DeploymentActionDialogProps {
  readonly action: DeploymentAction
  readonly deployment: Deployment
  readonly onClose: () => void
  /** `isGone`: the deployment exists no more. */
  readonly onDone: (text: string, isGone: boolean) => void
}

/** States what an action does to a deployment, with Terraform's plan on request, and performs it. */
export const DeploymentActionDialog = ({ action, deployment, onClose, onDone }: DeploymentActionDialogProps) => {
  const { id, sovereignFQDN: fqdn } = deployment
  const { title, confirmLabel, isDangerous, consequences, needsKeys } = describeDeploymentAction(action, deployment)
  const accessKey = useRef<HTMLInputElement>(null)
  const secretKey = useRef<HTMLInputElement>(null)
  const [planText, setPlanText] = useState<string | null>(null)
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
    const { text } = await client.planDeployment({ id, operation, ...readKeys() })
    setPlanText(text)
  })
  const perform: Readonly<Record<DeploymentAction, () => Promise<readonly [text: string, isGone: boolean]>>> = {
    apply: async () => {
      await client.applyDeployment({ id, ...(needsKeys ? takeKeys(accessKey, secretKey) : {}) })
      return [`The apply of ${fqdn} has started.`, false]
    },
    destroy: async () => {
      await client.destroyDeployment({ id, ...(needsKeys ? takeKeys(accessKey, secretKey) : {}) })
      return [`The destroy of ${fqdn} has started.`, false]
    },
    cancel: async () => {
      // A browser repeats a request whose connection breaks, perhaps after the end of the run: this never deletes.
      await client.removeDeployment({ id, cancel: true })
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
      confirmLabel={confirmLabel}
      isDangerous={isDangerous}
      onConfirm={async () => onDone(...(await perform[action]()))}
      onClose={onClose}
    >
      <Sentences sentences={consequences} />
      {needsKeys && <SecretFields accessKey={accessKey} secretKey={secretKey} />}
      {operation !== null && (
        <div>
          <button type="button" disabled={plan.isRunning} onClick={plan.run}>
            {plan.isRunning ? 'Terraform plans …' : 'Show the plan'}
          </button>
        </div>
      )}
      {plan.error !== undefined && <ErrorNotice error={plan.error} />}
      {planText !== null && (
        // biome-ignore lint/a11y/noNoninteractiveTabindex: the keyboard scrolls it.
        <section class="code" tabIndex={0} aria-label="Plan">
          {planText.split('\n').map(toVisibleText).join('\n')}
        </section>
      )}
    </ConfirmDialog>
  )
}

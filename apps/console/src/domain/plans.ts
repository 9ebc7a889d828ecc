import type { Deployment, NamePlan } from '@pool/contract'
import { formatCount, pickVerb, toVisibleText } from './text.ts'
import { formatDuration } from './time.ts'

const stateSentence = ({ action, to, coolOffSeconds }: NamePlan, fqdn: string): string => {
  if (action === 'update') return `${fqdn} stays active and gets the new address.`
  if (to === 'cooling-off') {
    const duration = coolOffSeconds === undefined ? '' : ` for ${formatDuration(coolOffSeconds * 1_000)}`
    return `${fqdn} is released. Only its former client can reserve it${duration}.`
  }
  if (to === 'held') return `${fqdn} is released. It stays held, because a deployment has infrastructure under it.`
  return action === 'lift-cool-off'
    ? `The cool-off of ${fqdn} ends. Any client can reserve it.`
    : `${fqdn} is released. Any client can reserve it immediately.`
}

/** The changes of a plan without the deletions of other writers' records. */
export const findOwnChanges = ({
  changes,
  deletedRecords,
}: Pick<NamePlan, 'changes' | 'deletedRecords'>): NamePlan['changes'] => {
  const foreign = new Set(deletedRecords.map(({ name, type }) => `${name} ${type}`))
  return changes.filter(({ action, name, type }) => action !== 'delete' || !foreign.has(`${name} ${type}`))
}

/** What an action does to a name, in sentences. */
export const describeNamePlan = (plan: NamePlan): readonly string[] => {
  const { subdomain, poolDomain, action, deletedRecords, unavailable, conflict } = plan
  const own = findOwnChanges(plan)
  const upserts = own.filter(change => change.action === 'upsert').length
  const deletes = own.length - upserts
  const writes = [
    ...(upserts > 0 ? [`${formatCount(upserts, 'record set')} ${pickVerb(upserts, 'is', 'are')} written`] : []),
    ...(deletes > 0 ? [`${formatCount(deletes, 'record set')} ${pickVerb(deletes, 'is', 'are')} deleted`] : []),
    ...(deletedRecords.length > 0
      ? [
          `${formatCount(deletedRecords.length, 'record set')} of other writers at or below the name ${pickVerb(deletedRecords.length, 'is', 'are')} deleted`,
        ]
      : []),
  ]
  return [
    stateSentence(plan, `${subdomain}.${poolDomain}`),
    ...(writes.length > 0 ? [`In DNS, ${writes.join(' and ')}.`] : ['DNS does not change.']),
    ...(action === 'release' ? ['Clients that resolve the name get no address after the TTL.'] : []),
    ...(unavailable === undefined
      ? []
      : [`The zone could not be read, so that this plan may lack records: ${toVisibleText(unavailable)}`]),
    ...(conflict === undefined ? [] : [`The records are not written: ${toVisibleText(conflict)}`]),
  ]
}

const planTones: readonly (readonly [RegExp, string])[] = [
  [/^\s*(?:-\/\+|\+\/-|~) /, 'changed'],
  [/^\s*(?:\+|<=) /, 'added'],
  [/^\s*- /, 'removed'],
  [/^\s*# |^Plan: |^No changes/, 'heading'],
]

/** How a line of Terraform's plan looks; its symbol says the same. */
export const toPlanTone = (line: string): string => planTones.find(([pattern]) => pattern.test(line))?.[1] ?? ''

export type DeploymentAction = 'apply' | 'destroy' | 'cancel' | 'delete' | 'abandon' | 'unlock'

interface ActionText {
  readonly title: string
  readonly confirmLabel: string
  readonly consequences: readonly string[]
}

export interface DeploymentPlanText extends ActionText {
  readonly isDangerous: boolean
  /** Machines end, or are forgotten: the user types the FQDN. */
  readonly needsName: boolean
  /** Terraform runs, so that it needs the keys of the object storage. */
  readonly needsKeys: boolean
}

type PlannedDeployment = Pick<
  Deployment,
  'sovereignFQDN' | 'objectStorageBucket' | 'status' | 'keptBucket' | 'operation'
>

/** Whether a run is queued or in progress. */
export const isRunning = ({ status }: Pick<Deployment, 'status'>): boolean =>
  status === 'pending' || status === 'provisioning' || status === 'destroying'

/** Whether only another destroy can follow. */
const isPartlyDestroyed = ({ status, operation }: Pick<Deployment, 'status' | 'operation'>): boolean =>
  status === 'failed' && operation === 'destroy'

/** Whether its error lists what an apply must not create a second time. */
export const isUnfinished = ({ error = '' }: Pick<Deployment, 'error'>): boolean => error.includes('unfinishedRemoved')

/** What to do after a failure. */
export const describeRemedy = (deployment: Pick<Deployment, 'status' | 'operation'>): string =>
  isPartlyDestroyed(deployment)
    ? 'Destroy again after the cause is gone; the deployment cannot be applied before that.'
    : 'Apply again after the cause is gone, or destroy the deployment.'

/** The actions that make sense in this state. A run that has failed can have left a lock, or nothing at all. */
export const findDeploymentActions = (deployment: PlannedDeployment): readonly DeploymentAction[] => {
  if (isRunning(deployment)) return ['cancel']
  if (deployment.status === 'destroyed') return ['apply', 'delete']
  if (isPartlyDestroyed(deployment)) return ['destroy', 'delete', 'abandon', 'unlock']
  return deployment.status === 'failed'
    ? ['apply', 'destroy', 'delete', 'abandon', 'unlock']
    : ['apply', 'destroy', 'abandon']
}

/** What an action does to a deployment. */
export const describeDeploymentAction = (
  action: DeploymentAction,
  { sovereignFQDN: fqdn, objectStorageBucket: bucket, keptBucket: kept }: PlannedDeployment,
): DeploymentPlanText => {
  const hasBucket = bucket !== ''
  const keptBucket = hasBucket ? [`The bucket ${bucket} and its content are kept.`] : []
  const texts: Readonly<Record<DeploymentAction, ActionText>> = {
    apply: {
      title: `Apply ${fqdn}`,
      confirmLabel: 'Apply',
      consequences: [
        'Terraform applies the current module with the stored input: it resumes, updates or installs again.',
        'The name stays with this deployment, or is reserved again.',
        'The plan shows what would change.',
      ],
    },
    destroy: {
      title: `Destroy ${fqdn}`,
      confirmLabel: 'Destroy',
      consequences: [
        `Terraform destroys the infrastructure of ${fqdn}. What runs on it ends.`,
        ...keptBucket,
        'Afterwards the name is released and its records are deleted.',
      ],
    },
    cancel: {
      title: `Cancel the run of ${fqdn}`,
      confirmLabel: 'Cancel the run',
      consequences: [
        'Terraform is interrupted. The deployment ends as failed.',
        'What was made so far remains: apply again to resume, or destroy.',
      ],
    },
    delete: {
      title: `Delete the deployment ${fqdn}`,
      confirmLabel: 'Delete',
      consequences: [
        'The deployment and its log are deleted; its history is kept.',
        'If its infrastructure may exist, the service rejects this: destroy it first.',
        ...(kept === undefined
          ? []
          : [
              `The bucket ${kept} and its content are kept. A new deployment of ${fqdn} can use them, with keys that own the bucket; this one can no longer.`,
            ]),
      ],
    },
    abandon: {
      title: `Abandon the infrastructure of ${fqdn}`,
      confirmLabel: 'Abandon',
      consequences: [
        'The deployment is deleted although its infrastructure may exist. Nothing is destroyed.',
        'The service forgets the state: remove what is left yourself, or it continues to cost money.',
        'The name is released and its records are deleted.',
        ...(hasBucket ? [`The claim of the bucket ${bucket} stays until it is lifted.`] : []),
      ],
    },
    unlock: {
      title: `Unlock the state of ${fqdn}`,
      confirmLabel: 'Unlock',
      consequences: [
        'The lock that a run of this deployment left on the Terraform state is lifted.',
        'Do this only if no Terraform of this deployment runs on any machine: two at a time damage the state.',
      ],
    },
  }
  const needsName = action === 'destroy' || action === 'abandon'
  const runsTerraform = action === 'apply' || action === 'destroy'
  return { ...texts[action], isDangerous: action !== 'apply', needsName, needsKeys: hasBucket && runsTerraform }
}

import type { DeploymentHistoryEntry, HistoryEntry, LeaseTransition } from '@pool/contract'

const eventTexts: Readonly<Record<HistoryEntry['event'], string>> = {
  reserved: 'Reserved',
  renewed: 'Renewed',
  committed: 'Committed',
  updated: 'Address changed',
  republished: 'Brought to the current template',
  'records-changed': 'Records of the tenant changed',
  'token-minted': 'Token for records minted',
  'token-deleted': 'Token for records deleted',
  released: 'Released',
  expired: 'Reservation expired',
  'cool-off-lifted': 'Cool-off ended by an operator',
  adopted: 'Adopted from the zone',
  'orphan-removed': 'Orphan removed',
  published: 'Records published',
  withdrawn: 'Records deleted',
  failing: 'Publication failed',
  repaired: 'Records repaired',
}

const actorTexts: Readonly<Record<HistoryEntry['actor'] | DeploymentHistoryEntry['actor'], string>> = {
  operator: 'an operator',
  'in-cluster': 'a client in the cluster',
  sweeper: 'the service',
  convergence: 'the service',
  deployment: 'the deployment',
  tenant: 'a tool of the tenant',
}

/** Who caused an entry, and from where. */
export const describeActor = ({
  actor,
  address,
}: Pick<HistoryEntry | DeploymentHistoryEntry, 'actor' | 'address'>): string =>
  `by ${actorTexts[actor]}${address ? ` from ${address}` : ''}`

/** What happened to a name. */
export const describeEvent = ({ event, renewalCount }: HistoryEntry): string =>
  renewalCount === undefined
    ? eventTexts[event]
    : `${eventTexts[event]}, after ${renewalCount} ${renewalCount === 1 ? 'renewal' : 'renewals'}`

/** The tone of an event in a timeline. */
export const toEventTone = (event: HistoryEntry['event'] | DeploymentHistoryEntry['event']): 'ok' | 'bad' | '' => {
  if (event === 'failing' || event === 'failed') return 'bad'
  return event === 'published' || event === 'ready' ? 'ok' : ''
}

const deploymentTexts: Readonly<Record<DeploymentHistoryEntry['event'], string>> = {
  created: 'Created',
  'apply-requested': 'Apply requested',
  'destroy-requested': 'Destroy requested',
  cancelled: 'Cancelled',
  abandoned: 'Abandoned',
  deleted: 'Deleted',
  unlocked: 'State unlocked',
  'bucket-claim-lifted': 'Bucket claim lifted',
  ready: 'Ready',
  failed: 'Failed',
  destroyed: 'Destroyed',
}

export const describeDeploymentEvent = ({ event }: DeploymentHistoryEntry): string => deploymentTexts[event]

export interface Run {
  readonly operation: 'Create' | 'Apply' | 'Destroy'
  /** Who requested it. */
  readonly by: string
  /** RFC 3339. */
  readonly at: string
  readonly outcome: 'in progress' | 'ready' | 'failed' | 'destroyed'
  /** Milliseconds from the request to the end. */
  readonly durationMs?: number
}

const requests = { created: 'Create', 'apply-requested': 'Apply', 'destroy-requested': 'Destroy' } as const

/** The runs of a deployment, newest first, from its history, whose newest entry is the first. */
export const toRuns = (entries: readonly DeploymentHistoryEntry[]): readonly Run[] => {
  const runs: Run[] = []
  for (const { event, at, ...caller } of entries.toReversed()) {
    const [last] = runs
    if (event in requests) {
      const operation = requests[event as keyof typeof requests]
      runs.unshift({ operation, by: describeActor(caller), at, outcome: 'in progress' })
    } else if (last?.outcome === 'in progress' && (event === 'ready' || event === 'failed' || event === 'destroyed')) {
      runs[0] = { ...last, outcome: event, durationMs: Date.parse(at) - Date.parse(last.at) }
    }
  }
  return runs
}

const holder = (name: string): string => (name === '' ? 'no holder' : name)

/** A change of a lease, as a sentence. */
export const describeTransition = ({ event, from, to, by }: LeaseTransition): string => {
  switch (event) {
    case 'acquired':
      return from === '' ? `${holder(to)} acquired it` : `${holder(to)} acquired it after ${from}`
    case 'released':
      return by === from ? `${holder(from)} released it` : `${holder(by)} released the lease of ${holder(from)}`
    case 'adopted':
      return `Taken over from another system, with ${holder(to)}`
    case 'jumped':
      return 'The generation jumped, after a loss of storage or a drain'
    case 'foreign-writer':
      return 'Another system wrote the record of this slot; the generation jumped above it'
    case 'clock-set-back':
      return `The clock of the witness was set back; ${holder(to)} has the whole TTL again`
  }
}

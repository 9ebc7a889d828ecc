import type { DeploymentStatus, ListedName } from '@pool/contract'

export type StatusTone = 'ok' | 'busy' | 'warn' | 'bad' | 'idle'

/** A status as a symbol and a word, so that it needs no colour. */
export const Status = ({ tone, text }: { readonly tone: StatusTone; readonly text: string }) => (
  <span class={`status ${tone}`}>{text}</span>
)

const nameTones: Readonly<Record<ListedName['state'], readonly [StatusTone, string]>> = {
  free: ['idle', 'free'],
  reserved: ['busy', 'reserved'],
  active: ['ok', 'active'],
  'cooling-off': ['idle', 'cooling off'],
  held: ['warn', 'held'],
}

export const NameStatus = ({ state }: Pick<ListedName, 'state'>) => {
  const [tone, text] = nameTones[state]
  return <Status tone={tone} text={text} />
}

const dnsTones = { pending: 'busy', published: 'ok', failing: 'bad' } as const

/** After a release, the records are published when they have been deleted. */
export const DnsStatusText = ({ state, dns }: Pick<ListedName, 'state' | 'dns'>) => {
  if (dns === undefined) return <span class="muted">–</span>
  if (state !== 'active' && dns.status === 'published') return <Status tone="idle" text="deleted" />
  return <Status tone={dnsTones[dns.status]} text={dns.status} />
}

const deploymentTones: Readonly<Record<DeploymentStatus, StatusTone>> = {
  pending: 'busy',
  provisioning: 'busy',
  ready: 'ok',
  failed: 'bad',
  destroying: 'busy',
  destroyed: 'idle',
}

export const DeploymentStatusText = ({ status }: { readonly status: string }) => (
  <Status tone={deploymentTones[status as DeploymentStatus] ?? 'idle'} text={status} />
)

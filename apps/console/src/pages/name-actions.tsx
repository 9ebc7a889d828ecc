import { formatTarget, type NameAction, type NamePlan, type Target } from '@pool/contract'
import { useMemo, useState } from 'preact/hooks'
import { client, createIdempotencyKey } from '../api/client.ts'
import { type Resource, useResource } from '../api/resource.ts'
import { useSettings } from '../api/session.tsx'
import { describeNamePlan, findOwnChanges } from '../domain/plans.ts'
import { type RecordSet, toPlanRows } from '../domain/record-diff.ts'
import { parseTarget } from '../domain/target.ts'
import { toFieldText } from '../domain/text.ts'
import { PlanTable } from '../ui/data-table.tsx'
import { ConfirmDialog } from '../ui/dialog.tsx'
import { Sentences } from '../ui/facts.tsx'
import { Loaded, Notice } from '../ui/feedback.tsx'
import { TextField } from '../ui/field.tsx'

interface NameActionDialogProps {
  readonly kind: NameAction
  readonly pool: string
  readonly subdomain: string
  readonly currentTarget: Target
  /** The record sets of the zone, as far as the page has read them. */
  readonly found: readonly RecordSet[]
  readonly onClose: () => void
  /** `text`: what was done. */
  readonly onDone: (text: string) => void
}

const titles: Readonly<Record<NameAction, string>> = {
  release: 'Release',
  update: 'Change the target of',
  'lift-cool-off': 'End the cool-off of',
}
export const nameActionLabels: Readonly<Record<NameAction, string>> = {
  release: 'Release',
  update: 'Change the target',
  'lift-cool-off': 'End the cool-off',
}

const PlanContent = ({ plan, found }: { readonly plan: NamePlan; readonly found: readonly RecordSet[] }) => {
  const own = findOwnChanges(plan)
  return (
    <>
      <Sentences sentences={describeNamePlan(plan)} />
      {own.length > 0 && <PlanTable label="Changes in DNS" rows={toPlanRows(own, found)} />}
      {plan.deletedRecords.length > 0 && (
        <Notice tone="warn" title="Records of other writers are deleted with the name:">
          <PlanTable
            label="Deleted records of other writers"
            rows={plan.deletedRecords.map(({ name, type, data }) => ({
              sign: '−',
              kind: 'removed',
              name,
              type,
              text: data.join(', '),
            }))}
          />
        </Notice>
      )}
    </>
  )
}

/** Shows the plan of an action on a name, and performs it on confirmation. */
export const NameActionDialog = (props: NameActionDialogProps) => {
  const { kind, pool, subdomain, currentTarget, found, onClose, onDone } = props
  const { acceptsLoopback } = useSettings()
  const [text, setText] = useState('')
  const path = { domain: pool, subdomain }
  const fqdn = `${subdomain}.${pool}`
  // A second confirmation repeats the first: if its response was lost, the service does not do it again.
  const idempotencyKey = useMemo(createIdempotencyKey, [kind, text])
  const parsed = parseTarget(text, { acceptsLoopback })
  const isReady = kind !== 'update' || parsed.kind === 'target'
  const change = parsed.kind === 'target' ? parsed.change : {}
  const dryRun: Readonly<Record<NameAction, (signal: AbortSignal) => Promise<NamePlan>>> = {
    release: signal => client.releaseName({ ...path, dryRun: true }, { signal }),
    update: signal => client.updateName({ ...path, ...change, dryRun: true }, { signal }),
    'lift-cool-off': signal => client.liftCoolOff({ ...path, dryRun: true }, { signal }),
  }
  const plan: Resource<NamePlan> = useResource(dryRun[kind], { key: `${kind} ${text}`, isEnabled: isReady })
  const perform: Readonly<Record<NameAction, () => Promise<string>>> = {
    release: async () => {
      const result = await client.releaseName(path, { idempotencyKey })
      return 'warning' in result
        ? `${fqdn} is released. Its records are still being deleted.`
        : `${fqdn} is released, and its records are deleted.`
    },
    update: async () => {
      const result = await client.updateName({ ...path, ...change }, { idempotencyKey })
      return 'warning' in result
        ? `${fqdn} points to ${text}. Its records are still being written.`
        : `${fqdn} points to ${text}, also in DNS.`
    },
    'lift-cool-off': async () => {
      await client.liftCoolOff(path)
      return `${fqdn} is free.`
    },
  }
  return (
    <ConfirmDialog
      title={`${titles[kind]} ${fqdn}`}
      confirmLabel={nameActionLabels[kind]}
      isDangerous={kind !== 'update'}
      canConfirm={isReady && plan.data !== undefined}
      onConfirm={async () => onDone(await perform[kind]())}
      onClose={onClose}
    >
      {kind === 'update' && (
        <TextField
          label="New target"
          hint={`An IPv4 and an IPv6 address, a host name, or at least two name servers. The current target is ${formatTarget(currentTarget)}.`}
          value={text}
          error={text !== '' && parsed.kind === 'invalid' ? toFieldText(parsed.detail) : undefined}
          onInput={input => setText(input.trim())}
        />
      )}
      {isReady && <Loaded resource={plan}>{data => <PlanContent plan={data} found={found} />}</Loaded>}
    </ConfirmDialog>
  )
}

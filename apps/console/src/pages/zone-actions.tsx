import { formatTarget } from '@pool/contract'
import type { ComponentChildren } from 'preact'
import { useId, useState } from 'preact/hooks'
import { client } from '../api/client.ts'
import { type Resource, useResource } from '../api/resource.ts'
import { type PlanRow, toDifferenceRows, toPlanRows } from '../domain/record-diff.ts'
import { formatCount } from '../domain/text.ts'
import { describeConverge, describeDifferences, describeRepublish, describeTrust, type Trust } from '../domain/zone.ts'
import { PlanTable } from '../ui/data-table.tsx'
import { ConfirmDialog } from '../ui/dialog.tsx'
import { Sentences } from '../ui/facts.tsx'
import { Loaded } from '../ui/feedback.tsx'

export interface ZoneDialogProps {
  readonly pool: string
  readonly onClose: () => void
  /** `text`: what was done. */
  readonly onDone: (text: string) => void
}

/** What was done, and whether the zone has all of it. */
const report = (text: string, result: object): string =>
  'warning' in result ? `${text} The zone does not have all of it yet; the service continues.` : text

interface PlanDialogProps<Plan> {
  readonly pool: string
  /** What the operator does, as the button says. */
  readonly label: string
  /** What the dry run has found. */
  readonly plan: Resource<Plan>
  readonly describe: (plan: Plan) => string
  readonly toRows: (plan: Plan) => readonly PlanRow[]
  readonly canConfirm?: (plan: Plan) => boolean
  readonly isDangerous?: boolean
  readonly onConfirm: () => Promise<void>
  readonly onClose: () => void
  /** Above the plan. */
  readonly children?: ComponentChildren
}

/** Shows what a change of the zone does before it is confirmed. */
const PlanDialog = <Plan,>(props: PlanDialogProps<Plan>) => {
  const { pool, label, plan, describe, toRows, canConfirm = () => true, children, ...dialog } = props
  return (
    <ConfirmDialog
      title={`${label} ${pool}`}
      confirmLabel={label}
      canConfirm={plan.data !== undefined && canConfirm(plan.data)}
      {...dialog}
    >
      {children}
      <Loaded resource={plan}>
        {data => {
          const rows = toRows(data)
          return (
            <>
              <p>{describe(data)}</p>
              {rows.length > 0 && <PlanTable label="Changes to the zone" rows={rows} />}
            </>
          )
        }}
      </Loaded>
    </ConfirmDialog>
  )
}

/** Repairs the zone. The dry run shows what that changes. */
export const ConvergeDialog = ({ pool, onClose, onDone }: ZoneDialogProps) => {
  const plan = useResource(signal => client.convergeZone({ domain: pool, dryRun: true }, { signal }), { key: pool })
  return (
    <PlanDialog
      pool={pool}
      label="Converge"
      plan={plan}
      describe={describeConverge}
      toRows={({ changes }) => toPlanRows(changes)}
      onClose={onClose}
      onConfirm={async () => {
        const result = await client.convergeZone({ domain: pool })
        const text =
          result.changeCount === 0 ? 'the zone has the desired records' : formatCount(result.changeCount, 'change')
        onDone(report(`${pool}: ${text}.`, result))
      }}
    />
  )
}

/** Brings the names to the current record template. */
export const RepublishDialog = ({ pool, onClose, onDone }: ZoneDialogProps) => {
  const plan = useResource(signal => client.republishZone({ domain: pool, dryRun: true }, { signal }), { key: pool })
  return (
    <PlanDialog
      pool={pool}
      label="Republish"
      plan={plan}
      describe={describeRepublish}
      toRows={({ changes }) => toPlanRows(changes)}
      canConfirm={({ nameCount }) => nameCount > 0}
      onClose={onClose}
      onConfirm={async () => {
        const result = await client.republishZone({ domain: pool })
        // The client repeats a request whose response was lost, and then there is nothing left to do.
        const text =
          result.nameCount === 0
            ? 'every active name has the records of the current template'
            : `${formatCount(result.nameCount, 'name')} republished`
        onDone(report(`${pool}: ${text}.`, result))
      }}
    />
  )
}

const trusts: readonly (readonly [Trust, string])[] = [
  ['database', 'The database is right'],
  ['zone', 'The zone is right'],
]

/** Starts the writes to a stopped zone again, after the operator has decided which side is right. */
export const ResumeDialog = ({ pool, onClose, onDone }: ZoneDialogProps) => {
  const [trust, setTrust] = useState<Trust>('database')
  const group = useId()
  const plan = useResource(signal => client.resumeZone({ domain: pool, trust, dryRun: true }, { signal }), {
    key: trust,
  })
  return (
    <PlanDialog
      pool={pool}
      label="Resume"
      isDangerous
      plan={plan}
      describe={({ differenceCount }) => describeDifferences(differenceCount)}
      toRows={({ differences }) => toDifferenceRows(differences)}
      onClose={onClose}
      onConfirm={async () => {
        const result = await client.resumeZone({ domain: pool, trust })
        const text = `${pool} is written again: ${formatCount(result.differenceCount, 'difference')} settled.`
        onDone(report(text, result))
      }}
    >
      <fieldset>
        <legend>Which side is right?</legend>
        {trusts.map(([value, label]) => (
          <label key={value} class="choice">
            <input type="radio" name={group} checked={trust === value} onChange={() => setTrust(value)} />
            {label}
          </label>
        ))}
      </fieldset>
      <Sentences sentences={describeTrust(trust)} />
    </PlanDialog>
  )
}

/** Makes allocations of orphans, or deletes their records. */
const OrphansDialog = ({ pool, isRemoval, onClose, onDone }: ZoneDialogProps & { readonly isRemoval: boolean }) => {
  const call = isRemoval ? client.removeOrphans.bind(client) : client.adoptOrphans.bind(client)
  const [excluded, setExcluded] = useState<ReadonlySet<string>>(new Set())
  const plan = useResource(signal => call({ domain: pool, dryRun: true }, { signal }), { key: pool })
  const chosen = plan.data?.orphans.filter(({ subdomain }) => !excluded.has(subdomain)) ?? []
  const toggle = (subdomain: string) => {
    const next = new Set(excluded)
    if (!next.delete(subdomain)) next.add(subdomain)
    setExcluded(next)
  }
  return (
    <ConfirmDialog
      title={isRemoval ? `Remove orphans of ${pool}` : `Adopt orphans of ${pool}`}
      confirmLabel={isRemoval ? `Remove ${chosen.length}` : `Adopt ${chosen.length}`}
      isDangerous={isRemoval}
      canConfirm={chosen.length > 0}
      onClose={onClose}
      onConfirm={async () => {
        const { changedCount } = await call({ domain: pool, subdomains: chosen.map(({ subdomain }) => subdomain) })
        // The client repeats a request whose response was lost, and then there is nothing left to do.
        const missing = chosen.length - changedCount
        const rest = missing > 0 ? ` ${formatCount(missing, 'name')} had been settled before.` : ''
        onDone(`${formatCount(changedCount, 'orphan')} ${isRemoval ? 'removed' : 'adopted'}.${rest}`)
      }}
    >
      <p>
        {isRemoval
          ? 'Every record set at and below these names is deleted, whichever client created it. The history lists them.'
          : 'These names become active with the target that the zone has. No client has a token of them: only an operator can change or release them.'}
      </p>
      <Loaded resource={plan}>
        {({ orphans }) => (
          <fieldset>
            <legend>Orphans</legend>
            {orphans.map(({ subdomain, otherRecordCount, ...target }) => (
              <label key={subdomain} class="choice">
                <input type="checkbox" checked={!excluded.has(subdomain)} onChange={() => toggle(subdomain)} />
                <span>
                  {subdomain} <code>{formatTarget(target)}</code>
                  {otherRecordCount > 0 && (
                    <span class="muted">, {formatCount(otherRecordCount, 'other record set')}</span>
                  )}
                </span>
              </label>
            ))}
          </fieldset>
        )}
      </Loaded>
    </ConfirmDialog>
  )
}

export const AdoptDialog = (props: ZoneDialogProps) => <OrphansDialog {...props} isRemoval={false} />
export const RemoveDialog = (props: ZoneDialogProps) => <OrphansDialog {...props} isRemoval />

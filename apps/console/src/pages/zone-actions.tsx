import { useId, useState } from 'preact/hooks'
import { client } from '../api/client.ts'
import { useResource } from '../api/resource.ts'
import { formatCount, pickVerb } from '../domain/count.ts'
import { toDifferenceRows, toPlanRows } from '../domain/record-diff.ts'
import { describeTrust, type Trust } from '../domain/zone.ts'
import { ConfirmDialog } from '../ui/dialog.tsx'
import { Loaded } from '../ui/feedback.tsx'
import { PlanTable } from '../ui/plan-table.tsx'

interface ZoneDialogProps {
  readonly pool: string
  readonly onClose: () => void
  /** `text`: what was done. */
  readonly onDone: (text: string) => void
}

const isPending = (result: object): boolean => 'warning' in result

const PENDING_TEXT = 'The zone does not have all of it yet; the service continues.'

/** Repairs the zone. The dry run shows what that changes. */
export const ConvergeDialog = ({ pool, onClose, onDone }: ZoneDialogProps) => {
  const plan = useResource(signal => client.convergeZone({ domain: pool, dryRun: true }, { signal }), { key: pool })
  return (
    <ConfirmDialog
      title={`Converge ${pool}`}
      confirmLabel="Converge"
      canConfirm={plan.data !== undefined}
      onClose={onClose}
      onConfirm={async () => {
        const result = await client.convergeZone({ domain: pool })
        const text =
          result.changeCount === 0 ? 'the zone has the desired records' : formatCount(result.changeCount, 'change')
        onDone(`${pool}: ${text}. ${isPending(result) ? PENDING_TEXT : ''}`)
      }}
    >
      <Loaded resource={plan}>
        {({ changes, changeCount, conflictCount }) => (
          <>
            <p>
              {changeCount === 0
                ? 'The zone has the desired records: nothing is written. Names that failed are tried again immediately.'
                : `${formatCount(changeCount, 'record set')} ${pickVerb(changeCount, 'changes', 'change')}. Names that failed are tried again immediately.`}
              {conflictCount > 0 &&
                ` ${formatCount(conflictCount, 'name')} with a record of another writer in the way ${pickVerb(conflictCount, 'is', 'are')} not changed.`}
            </p>
            {changes.length > 0 && <PlanTable label="Changes to the zone" rows={toPlanRows(changes)} />}
          </>
        )}
      </Loaded>
    </ConfirmDialog>
  )
}

/** Brings the names to the current record template. */
export const RepublishDialog = ({ pool, onClose, onDone }: ZoneDialogProps) => {
  const plan = useResource(signal => client.republishZone({ domain: pool, dryRun: true }, { signal }), { key: pool })
  return (
    <ConfirmDialog
      title={`Republish ${pool}`}
      confirmLabel="Republish"
      canConfirm={plan.data !== undefined && plan.data.nameCount > 0}
      onClose={onClose}
      onConfirm={async () => {
        const result = await client.republishZone({ domain: pool })
        // The client repeats a request whose response was lost, and then there is nothing left to do.
        const text =
          result.nameCount === 0
            ? 'every active name has the records of the current template'
            : `${formatCount(result.nameCount, 'name')} republished`
        onDone(`${pool}: ${text}. ${isPending(result) ? PENDING_TEXT : ''}`)
      }}
    >
      <Loaded resource={plan}>
        {({ changes, changeCount, nameCount }) => (
          <>
            <p>
              {nameCount === 0
                ? 'Every active name has the records of the current template: there is nothing to republish.'
                : `${formatCount(nameCount, 'active name')} ${pickVerb(nameCount, 'gets', 'get')} the records of the current template: ${formatCount(changeCount, 'record set')} ${pickVerb(changeCount, 'changes', 'change')}.`}
            </p>
            {changes.length > 0 && <PlanTable label="Changes to the zone" rows={toPlanRows(changes)} />}
          </>
        )}
      </Loaded>
    </ConfirmDialog>
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
    <ConfirmDialog
      title={`Resume ${pool}`}
      confirmLabel="Resume"
      isDangerous
      canConfirm={plan.data !== undefined}
      onClose={onClose}
      onConfirm={async () => {
        const result = await client.resumeZone({ domain: pool, trust })
        const text = `${pool} is written again: ${formatCount(result.differenceCount, 'difference')} settled.`
        onDone(`${text} ${isPending(result) ? PENDING_TEXT : ''}`)
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
      <ul class="sentences">
        {describeTrust(trust).map(sentence => (
          <li key={sentence}>{sentence}</li>
        ))}
      </ul>
      <Loaded resource={plan}>
        {({ differences, differenceCount }) => (
          <>
            <p>
              {differenceCount === 0
                ? 'The zone and the database agree.'
                : `${formatCount(differenceCount, 'name')} ${pickVerb(differenceCount, 'differs and changes', 'differ and change')} like this:`}
            </p>
            {differences.length > 0 && <PlanTable label="Differences" rows={toDifferenceRows(differences)} />}
          </>
        )}
      </Loaded>
    </ConfirmDialog>
  )
}

/** Makes allocations of orphans, or deletes their records. */
export const OrphansDialog = ({ pool, action, onClose, onDone }: ZoneDialogProps & { action: 'adopt' | 'remove' }) => {
  const isRemoval = action === 'remove'
  const call = isRemoval ? client.removeOrphans.bind(client) : client.adoptOrphans.bind(client)
  const [excluded, setExcluded] = useState<ReadonlySet<string>>(new Set())
  const plan = useResource(signal => call({ domain: pool, dryRun: true }, { signal }), { key: action })
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
          : 'These names become active with the address that the zone has. No client has a token of them: only an operator can change or release them.'}
      </p>
      <Loaded resource={plan}>
        {({ orphans }) => (
          <fieldset>
            <legend>Orphans</legend>
            {orphans.map(({ subdomain, loadBalancerIP, otherRecordCount }) => (
              <label key={subdomain} class="choice">
                <input type="checkbox" checked={!excluded.has(subdomain)} onChange={() => toggle(subdomain)} />
                <span>
                  {subdomain} <code>{loadBalancerIP}</code>
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

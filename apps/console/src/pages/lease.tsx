import { ProblemError } from '@pool/client'
import type { LeaseTransition } from '@pool/contract'
import { useState } from 'preact/hooks'
import { client } from '../api/client.ts'
import { readSlots } from '../api/leases.ts'
import { useResource } from '../api/resource.ts'
import { describeTransition } from '../domain/history.ts'
import { type LeaseRow, RELEASE_WARNINGS, toLeaseTone } from '../domain/lease.ts'
import { toVisibleText } from '../domain/visible-text.ts'
import { ConfirmDialog } from '../ui/dialog.tsx'
import { Facts, Sentences } from '../ui/facts.tsx'
import { EmptyState, Loaded, useToast } from '../ui/feedback.tsx'
import { Link } from '../ui/router.tsx'
import { Page, Panel } from '../ui/shell.tsx'
import { Status } from '../ui/status.tsx'
import { Countdown, Time } from '../ui/time.tsx'
import { Timeline } from '../ui/timeline.tsx'
import { useDialog } from '../ui/use-dialog.tsx'
import { useInterval } from '../ui/use-interval.ts'

const REFRESH_MS = 2_000

/** The history of a slot; empty if no client ever wrote it. */
const readTransitions = async (slot: string, signal: AbortSignal): Promise<readonly LeaseTransition[]> => {
  try {
    return (await client.readWitnessHistory({ slot }, { signal })).transitions
  } catch (error) {
    if (error instanceof ProblemError && error.status === 404) return []
    throw error
  }
}

const LeaseFacts = ({ lease }: { readonly lease: LeaseRow }) => (
  <Facts
    facts={{
      State: <Status {...toLeaseTone(lease)} />,
      Holder: lease.holder === '' ? 'none' : <code>{toVisibleText(lease.holder)}</code>,
      'Time left': lease.endsAt === undefined ? '–' : <Countdown endsAt={lease.endsAt} expiredText="expired" />,
      'Held since': <Time at={lease.acquiredAt} />,
      Generation: lease.generation.toLocaleString('en'),
      Waiters: String(lease.waiters),
    }}
  />
)

interface ReleaseDialogProps {
  readonly lease: LeaseRow
  readonly onClose: () => void
  readonly onDone: (text: string) => void
}

const ReleaseDialog = ({ lease, onClose, onDone }: ReleaseDialogProps) => {
  const { slot, holder, generation } = lease
  const [isSure, setIsSure] = useState(false)
  return (
    <ConfirmDialog
      title={`Release the lease ${toVisibleText(slot)} of ${toVisibleText(holder)}`}
      confirmLabel="Release"
      isDangerous
      canConfirm={isSure}
      onClose={onClose}
      onConfirm={async () => {
        await client.releaseWitnessLease({ slot, holder, generation })
        onDone(`The lease ${toVisibleText(slot)} is free.`)
      }}
    >
      <Sentences sentences={RELEASE_WARNINGS} />
      <label class="choice">
        <input type="checkbox" checked={isSure} onChange={event => setIsSure(event.currentTarget.checked)} />I have made
        sure that {toVisibleText(holder)} has stopped.
      </label>
    </ConfirmDialog>
  )
}

/** A slot: its lease, its history, and the release of a dead holder's lease. */
export const LeasePage = ({ slot }: { readonly slot: string }) => {
  const toast = useToast()
  const lease = useResource(async signal => (await readSlots(client, [slot], signal))[0], { key: slot })
  const history = useResource(signal => readTransitions(slot, signal), {
    key: `${slot} ${lease.data?.acquiredAt ?? ''} ${lease.data?.holder ?? ''}`,
    keepsPrevious: true,
  })
  useInterval(lease.reload, REFRESH_MS)
  const row = lease.data
  const { open, dialog } = useDialog<LeaseRow>((releasing, close) => (
    <ReleaseDialog
      lease={releasing}
      onClose={close}
      onDone={text => {
        toast(text)
        lease.reload()
      }}
    />
  ))
  return (
    <Page
      title={toVisibleText(slot)}
      crumbs={<Link to={{ page: 'leases', prefix: '' }}>Leases</Link>}
      actions={
        row !== undefined &&
        row.holder !== '' && (
          <button type="button" class="danger" onClick={() => open(row)}>
            Release
          </button>
        )
      }
    >
      <div class="columns two">
        <Panel title="Lease">
          <Loaded resource={lease}>
            {found =>
              found === undefined ? <EmptyState title="The witness has no such slot." /> : <LeaseFacts lease={found} />
            }
          </Loaded>
        </Panel>
        <Panel title="History">
          <Loaded resource={history}>
            {transitions =>
              transitions.length === 0 ? (
                <EmptyState title="The slot has no history.">
                  A controller acquires its lease with PUT /lease/&lt;slot&gt;, or with poolctl.
                </EmptyState>
              ) : (
                <Timeline
                  entries={transitions.map(transition => ({
                    title: toVisibleText(describeTransition(transition)),
                    at: transition.at,
                    details: (
                      <div class="detail">
                        generation {transition.generation.toLocaleString('en')}
                        {transition.token && `, token ${toVisibleText(transition.token)}`}
                      </div>
                    ),
                  }))}
                />
              )
            }
          </Loaded>
        </Panel>
      </div>
      {dialog}
    </Page>
  )
}

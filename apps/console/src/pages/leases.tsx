import { ProblemError } from '@pool/client'
import type { LeaseTransition } from '@pool/contract'
import { useState } from 'preact/hooks'
import { client, readLeases, readSlots } from '../api/client.ts'
import { useResource } from '../api/resource.ts'
import { useSettings } from '../api/session.tsx'
import { describeTransition } from '../domain/history.ts'
import { type LeaseRow, RELEASE_WARNINGS, toLeaseTone } from '../domain/lease.ts'
import { toVisibleText } from '../domain/text.ts'
import type { Column } from '../ui/data-table.tsx'
import { ConfirmDialog, useDialog } from '../ui/dialog.tsx'
import { Facts, Sentences, Status } from '../ui/facts.tsx'
import { EmptyState, Loaded, useToast } from '../ui/feedback.tsx'
import { Choice, TextField, useSearchText } from '../ui/field.tsx'
import { ListPanel, usePagedList } from '../ui/list-panel.tsx'
import { Link, useRouter } from '../ui/router.tsx'
import { Page, Panel } from '../ui/shell.tsx'
import { Countdown, Time, Timeline, useInterval } from '../ui/time.tsx'

/** The witness has no events for this service. */
const LIST_REFRESH_MS = 5_000
const LEASE_REFRESH_MS = 2_000

const columns: readonly Column<LeaseRow>[] = [
  {
    header: 'Slot',
    cell: ({ slot }) => <Link to={{ page: 'lease', slot }}>{toVisibleText(slot)}</Link>,
    sortValue: ({ slot }) => slot,
  },
  {
    header: 'State',
    cell: row => <Status {...toLeaseTone(row)} />,
    sortValue: row => toLeaseTone(row).text,
  },
  {
    header: 'Holder',
    cell: ({ holder }) => (holder === '' ? <span class="muted">none</span> : <code>{toVisibleText(holder)}</code>),
    sortValue: ({ holder }) => holder,
  },
  {
    header: 'Time left',
    class: 'number',
    cell: ({ endsAt }) =>
      endsAt === undefined ? <span class="muted">–</span> : <Countdown endsAt={endsAt} expiredText="expired" />,
    sortValue: ({ endsAt }) => endsAt ?? 0,
  },
  { header: 'Held since', cell: ({ acquiredAt }) => <Time at={acquiredAt} /> },
  {
    header: 'Generation',
    class: 'number',
    cell: ({ generation }) => generation.toLocaleString('en'),
    sortValue: ({ generation }) => generation,
  },
  {
    header: 'Waiters',
    class: 'number',
    cell: ({ waiters }) => waiters,
    sortValue: ({ waiters }) => waiters,
  },
]

/** Which lease is held where. */
export const LeasesPage = ({ prefix }: { readonly prefix: string }) => {
  const { hasWitness } = useSettings()
  const { replace } = useRouter()
  const [isHeldOnly, setIsHeldOnly] = useState(false)
  const search = useSearchText(prefix, text => replace({ page: 'leases', prefix: text }))
  const leases = usePagedList((cursor, signal) => readLeases({ prefix, cursor, signal }), {
    key: prefix,
    isEnabled: hasWitness,
  })
  useInterval(leases.reload, LIST_REFRESH_MS)
  if (!hasWitness) {
    return (
      <Page title="Leases">
        <EmptyState title="No witness is configured.">
          Set PDM_WITNESS_URL and PDM_WITNESS_TOKEN_FILE to show its leases here.
        </EmptyState>
      </Page>
    )
  }
  return (
    <Page title="Leases" lead="A new slot can be missing from this list for a minute. The state of each slot is exact.">
      <search class="filters">
        <TextField
          class="wide"
          type="search"
          label="Slots that begin with"
          placeholder="region-pair/"
          value={search.text}
          onInput={search.setText}
        />
        <Choice isChecked={isHeldOnly} onChange={setIsHeldOnly}>
          Only held leases
        </Choice>
      </search>
      <ListPanel
        title="Slots"
        label="Leases"
        list={leases}
        toRows={({ rows }) => (isHeldOnly ? rows.filter(row => toLeaseTone(row).tone !== 'idle') : rows)}
        columns={columns}
        rowKey={({ slot }) => slot}
        unit="slot"
        renderEmpty={() => (
          <EmptyState
            title={
              isHeldOnly
                ? 'No lease is held.'
                : prefix === ''
                  ? 'No slot exists yet.'
                  : 'No slot begins with this text.'
            }
          >
            A controller acquires a lease with PUT /lease/&lt;slot&gt;, or with poolctl.
          </EmptyState>
        )}
      />
    </Page>
  )
}

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
      ...(lease.value === undefined ? {} : { Value: <code>{toVisibleText(lease.value)}</code> }),
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
      <Choice isChecked={isSure} onChange={setIsSure}>
        I have made sure that {toVisibleText(holder)} has stopped.
      </Choice>
    </ConfirmDialog>
  )
}

/** A slot: its lease, its history, and the release of a dead holder's lease. */
export const LeasePage = ({ slot }: { readonly slot: string }) => {
  const toast = useToast()
  const lease = useResource(async signal => (await readSlots([slot], signal))[0], { key: slot })
  const history = useResource(signal => readTransitions(slot, signal), {
    key: `${slot} ${lease.data?.acquiredAt ?? ''} ${lease.data?.holder ?? ''}`,
    keepsPrevious: true,
  })
  useInterval(lease.reload, LEASE_REFRESH_MS)
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

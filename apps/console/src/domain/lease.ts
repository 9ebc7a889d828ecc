import type { LeaseStatus } from '@pool/contract'

/** A slot as the page shows it. */
export interface LeaseRow {
  readonly slot: string
  readonly holder: string
  readonly acquiredAt: string
  readonly generation: number
  /** What the holder shows to readers; absent: nothing. */
  readonly value?: string
  /** When the lease ends, in milliseconds by the clock of this machine; absent if no client holds it. */
  readonly endsAt?: number
  readonly waiters: number
  /** The slot could not be read. */
  readonly error?: string
}

/**
 * The state of a slot. The time that is left was measured before the response was sent, so that it counts from the receipt
 * and ends late, never early.
 */
export const toLeaseRow = (status: LeaseStatus, receivedAt: number): LeaseRow => {
  if ('error' in status) {
    return { slot: status.slot, holder: '', acquiredAt: '', generation: 0, waiters: 0, error: status.error }
  }
  const { slot, holder, acquiredAt, generation, value, waiters, remainingMs } = status
  return {
    slot,
    holder,
    acquiredAt,
    generation,
    waiters,
    ...(value === undefined ? {} : { value }),
    ...(remainingMs === undefined ? {} : { endsAt: receivedAt + remainingMs }),
  }
}

export const toLeaseTone = ({
  holder,
  endsAt,
  error,
}: LeaseRow): { readonly tone: 'ok' | 'bad' | 'idle'; readonly text: string } => {
  if (error !== undefined) return { tone: 'bad', text: error }
  if (holder === '' || endsAt === undefined) return { tone: 'idle', text: 'free' }
  return { tone: 'ok', text: 'held' }
}

/** What the release of another process's lease does: the words of docs/reference/leases.md. */
export const RELEASE_WARNINGS: readonly string[] = [
  'A previous holder may still be running. No lease service can prevent this: a process that was paused resumes and believes that it holds the lease.',
  'If it runs, a standby acquires the lease and two processes are active. Stop, then release: make sure first that the holder has stopped.',
  'A holder that is dead loses the lease without you as soon as its time is up. Release only if you cannot wait.',
  'The fencing token protects resources that compare it. A DNS record or the API of a load balancer does not.',
]

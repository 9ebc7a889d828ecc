import type { Overview } from '@pool/contract'

/** Every replica stores a sample each ten seconds. */
const MAX_SILENCE_MS = 60_000

type Replica = Pick<Overview['replicas'][number], 'lastSeenAt' | 'isReady' | 'circuitOpen'>

/** Whether a replica has stored no sample for so long that its process must have ended. */
export const hasEnded = ({ lastSeenAt }: Pick<Replica, 'lastSeenAt'>, now: number): boolean =>
  now - Date.parse(lastSeenAt) > MAX_SILENCE_MS

/** The state of a replica by its last sample. */
export const describeReplica = (
  replica: Replica,
  now: number,
): { readonly tone: 'ok' | 'warn' | 'bad' | 'idle'; readonly text: string } => {
  if (hasEnded(replica, now)) return { tone: 'idle', text: 'has ended' }
  const { isReady, circuitOpen } = replica
  if (circuitOpen) return { tone: 'bad', text: 'DNS calls suspended' }
  return isReady ? { tone: 'ok', text: 'ready' } : { tone: 'warn', text: 'not ready' }
}

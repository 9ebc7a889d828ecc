import type { Overview } from '@pool/contract'

/** Every replica stores a sample each ten seconds. */
const MAX_SILENCE_MS = 60_000

type Replica = Pick<Overview['replicas'][number], 'lastSeenAt' | 'isReady' | 'circuitOpen'>

/** The state of a replica by its last sample. */
export const describeReplica = (
  { lastSeenAt, isReady, circuitOpen }: Replica,
  now: number,
): { readonly tone: 'ok' | 'warn' | 'bad' | 'idle'; readonly text: string } => {
  if (now - Date.parse(lastSeenAt) > MAX_SILENCE_MS) return { tone: 'idle', text: 'has ended' }
  if (circuitOpen) return { tone: 'bad', text: 'DNS calls suspended' }
  return isReady ? { tone: 'ok', text: 'ready' } : { tone: 'warn', text: 'not ready' }
}

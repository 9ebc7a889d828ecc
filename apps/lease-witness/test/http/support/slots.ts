import type { LeaseState } from '../../../src/lease/lease.ts'
import { getHost } from './host.ts'

export const seed = (slot: string, lease: LeaseState): Promise<void> => getHost().seed(slot, lease)

export const held = (lease: Partial<LeaseState & { kind: 'held' }> = {}): LeaseState => {
  const now = Date.now()
  return {
    kind: 'held',
    holder: 'region-a',
    acquiredAt: now - 1_000,
    writtenAt: now - 1_000,
    expiresAt: now + 30_000,
    generation: 1,
    ...lease,
  }
}

export const released = (generation: number): LeaseState => {
  const now = Date.now()
  return { kind: 'released', acquiredAt: now - 2_000, writtenAt: now - 1_000, generation }
}

/** An expired lease. */
export const expired = (lease: Partial<LeaseState & { kind: 'held' }> = {}): LeaseState => {
  const now = Date.now()
  return held({ acquiredAt: now - 90_000, writtenAt: now - 60_000, expiresAt: now - 30_000, ...lease })
}

export const countWaiters = (slot: string): Promise<number> => getHost().countWaiters(slot)

/** Far more than a busy machine needs. */
const WAITERS_TIMEOUT_MS = 120_000

/** Resolves when `count` readers wait for the slot. */
export const waitForWaiters = async (slot: string, count: number): Promise<void> => {
  const startedAt = performance.now()
  while ((await countWaiters(slot)) !== count) {
    if (performance.now() - startedAt > WAITERS_TIMEOUT_MS) {
      throw new Error(`${slot} does not have ${count} waiting readers`)
    }
    await new Promise(resolve => setTimeout(resolve, 2))
  }
}

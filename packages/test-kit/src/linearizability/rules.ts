import type { Lease } from '@pool/contract/lease'
import type { Operation } from './history.ts'

/**
 * The contract's words once more, by the times that went over the wire and not by the code under test. The witness's clock
 * is this machine's, so what it decided lies within the operation to the millisecond.
 */

/** The part of an operation in which a state could be current. */
export interface Window {
  readonly from: number
  readonly until: number
}

/** Why a write cannot have followed from the state before it; undefined: it can. */
export const effectFault = (before: Lease, { asked, told, sentAt, answeredAt }: Operation): string | undefined => {
  if (asked.kind === 'read') return undefined
  if (asked.generation !== before.generation) return `made from generation ${before.generation}`
  if (asked.kind === 'release') return before.holder === asked.holder ? undefined : 'released what another held'
  if (told?.status !== 200) return undefined

  const { lease } = told
  const decidedAt = Date.parse(lease.expiresAt) - asked.ttlMs
  if (!(decidedAt >= sentAt && decidedAt <= answeredAt)) return 'does not expire one TTL after it was granted'
  if (lease.holder !== asked.holder) return 'granted to another than asked for it'
  // What is free has no expiry: NaN is after nothing.
  const isLive = decidedAt < Date.parse(before.expiresAt)
  const isOwn = before.holder === asked.holder
  if (isLive && !isOwn) return 'granted while another held it'
  if (asked.kind === 'renew' && !(isLive && isOwn)) return 'renewed what its sender no longer held'
  const acquiredAt = isLive ? before.acquiredAt : new Date(decidedAt).toISOString()
  return lease.acquiredAt === acquiredAt ? undefined : `acquired at ${lease.acquiredAt} instead of ${acquiredAt}`
}

/** Why the state that a 412 shows would have granted the request throughout the window; undefined: it would not. */
export const refusalFault = (shown: Lease, { asked }: Operation, { from, until }: Window): string | undefined => {
  if (asked.kind === 'read' || asked.generation !== shown.generation) return undefined
  const isOwn = asked.holder === shown.holder
  const expiresAt = Date.parse(shown.expiresAt)
  switch (asked.kind) {
    case 'release':
      return isOwn ? 'refused to release what its sender held' : undefined
    case 'renew':
      return isOwn && until < expiresAt ? 'refused to renew what its sender held' : undefined
    case 'acquire':
      if (isOwn) return 'refused what its sender held'
      return from < expiresAt ? undefined : 'refused what nobody held'
  }
}

/** Whether a kind of call can be answered so at all. */
export const statusFault = ({ asked, told }: Operation, generation: number): string | undefined => {
  if (!told) return undefined
  const isWritten = generation > 0
  const isKnown = asked.kind === 'read' && asked.known === generation
  const allowed = {
    read: isWritten ? (isKnown ? 304 : 200) : 404,
    acquire: 412,
    renew: 412,
    release: isWritten ? 412 : 204,
  }[asked.kind]
  return told.status === allowed ? undefined : `answered ${told.status} at generation ${generation}`
}

import type { Lease } from '@pool/contract/lease'

/** A write of one client, fenced by the generation that it replaces. */
export interface SentWrite {
  readonly kind: 'acquire' | 'renew' | 'release'
  readonly holder: string
  readonly generation: number
}

/**
 * What a read after a write without a response shows.
 *
 * - `applied`: the write took effect. Of a release: the client no longer holds the lease.
 * - `unapplied`: the lease is as it was before. The write can still take effect until another write succeeds.
 * - `superseded`: another write succeeded instead.
 */
export type WriteComparison = 'applied' | 'unapplied' | 'superseded'

/** Compares holder and generation. Holder names are unique, so a later generation of this holder comes from this write. */
export const compareWrite = ({ kind, holder, generation }: SentWrite, current: Lease): WriteComparison => {
  if (current.generation <= generation) return 'unapplied'
  const isHolder = current.holder === holder
  return isHolder === (kind !== 'release') ? 'applied' : 'superseded'
}

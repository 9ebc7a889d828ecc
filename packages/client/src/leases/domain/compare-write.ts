import type { Lease } from '@pool/contract/lease'

/** A write of one client, fenced by the generation that it replaces. */
export interface SentWrite {
  readonly kind: 'acquire' | 'renew' | 'release'
  readonly holder: string
  /** No other process can have the name of the holder. */
  readonly isUnique: boolean
  readonly generation: number
}

/**
 * What the current lease shows about a write without a response, or about one that was rejected although a proxy may have
 * sent it twice.
 *
 * - `applied`: the write took effect. Of a release: the client no longer holds the lease.
 * - `unapplied`: the lease is as it was before. The write can still take effect until another write succeeds.
 * - `superseded`: another write succeeded instead.
 * - `possible`: this write, or one of another process with the same name.
 */
export type WriteComparison = 'applied' | 'unapplied' | 'superseded' | 'possible'

/** Compares holder and generation. */
export const compareWrite = ({ kind, holder, isUnique, generation }: SentWrite, current: Lease): WriteComparison => {
  if (current.generation <= generation) return 'unapplied'
  const isHolder = current.holder === holder
  if (isHolder === (kind === 'release')) return 'superseded'
  return isHolder && !isUnique ? 'possible' : 'applied'
}

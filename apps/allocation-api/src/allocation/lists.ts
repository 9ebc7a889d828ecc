import { setTimeout as sleep } from 'node:timers/promises'
import type { Allocation } from '@pool/contract'
import { createPageQueue, paginate } from '../lib/paginate.ts'
import { type Pools, validatePool } from '../naming/naming.ts'
import type { EntryWithId, HistoryQuery, ListOutcome, ListQuery } from './domain/types.ts'
import type { AllocationReader } from './reader.ts'

export interface ListOptions {
  readonly reader: Pick<AllocationReader, 'list' | 'listHistory'>
  readonly pools: () => Pools
  /** Milliseconds of a monotonic clock. */
  readonly now: () => number
}

/** What is too long for one response in memory, page by page. */
export const createLists = ({ reader, pools, now }: ListOptions) => {
  const fetchPage = createPageQueue({ now, sleep: ms => sleep(ms, undefined, { ref: false }) })
  return {
    /** The allocations of a pool in the order of their subdomains. */
    list(poolDomain: string, { state, limit, cursor }: ListQuery): ListOutcome<Allocation> {
      const rejection = validatePool(poolDomain, pools())
      if (rejection) return rejection
      const pages = paginate({
        fetch: (after = '', size) => fetchPage(() => reader.list(poolDomain, { after, limit: size, state })),
        toCursor: allocation => allocation.subdomain,
        cursor,
        limit,
      })
      return { kind: 'listed', pages }
    },

    /** The transitions of a pool or of one name, newest first. */
    history(poolDomain: string, { sub, limit, cursor }: HistoryQuery): ListOutcome<EntryWithId> {
      const rejection = validatePool(poolDomain, pools())
      if (rejection) return rejection
      const pages = paginate({
        fetch: (position, size) => {
          const before = position === undefined ? undefined : Number(position)
          return fetchPage(() => reader.listHistory(poolDomain, { subdomain: sub, before, limit: size }))
        },
        toCursor: ({ id }) => String(id),
        cursor,
        limit,
      })
      return { kind: 'listed', pages }
    },
  }
}

import type { Allocation } from '@pool/contract'
import { type PageQueue, paginate } from '../lib/paginate.ts'
import { type Pools, validatePool } from '../naming/naming.ts'
import type { EntryWithId, HistoryQuery, ListOutcome, ListQuery } from './domain/types.ts'
import type { AllocationReader } from './reader.ts'

export interface ListOptions {
  readonly reader: Pick<AllocationReader, 'list' | 'listHistory'>
  readonly pools: () => Pools
}

/** What is too long for one response in memory, page by page. */
export const createLists = ({ reader, pools }: ListOptions) => {
  return {
    /** The allocations of a pool in the order of their subdomains. */
    list(poolDomain: string, { state, limit, cursor }: ListQuery, inTurn: PageQueue): ListOutcome<Allocation> {
      const rejection = validatePool(poolDomain, pools())
      if (rejection) return rejection
      const pages = paginate({
        fetch: (after = '', size) => inTurn(() => reader.list(poolDomain, { after, limit: size, state })),
        toCursor: allocation => allocation.subdomain,
        cursor,
        limit,
      })
      return { kind: 'listed', pages }
    },

    /** The transitions of a pool or of one name, newest first. */
    history(poolDomain: string, { sub, limit, cursor }: HistoryQuery, inTurn: PageQueue): ListOutcome<EntryWithId> {
      const rejection = validatePool(poolDomain, pools())
      if (rejection) return rejection
      const pages = paginate({
        fetch: (position, size) => {
          const before = position === undefined ? undefined : Number(position)
          return inTurn(() => reader.listHistory(poolDomain, { subdomain: sub, before, limit: size }))
        },
        toCursor: ({ id }) => String(id),
        cursor,
        limit,
      })
      return { kind: 'listed', pages }
    },
  }
}

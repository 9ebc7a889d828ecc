import type { Allocation } from '@pool/contract'
import { type Pages, paginate } from '../lib/paginate.ts'
import { type NameRejection, validatePool } from '../naming/naming.ts'
import type { EntryWithId } from './domain/types.ts'
import type { HistoryReader } from './history.ts'
import type { Reader } from './reader.ts'

export interface ListDependencies {
  readonly reader: Pick<Reader, 'page'>
  readonly history: HistoryReader
  readonly managedDomains: readonly string[]
}

export interface ListQuery {
  readonly state?: Allocation['state'] | undefined
  readonly limit?: number | undefined
  /** The subdomain after which to begin. */
  readonly cursor?: string | undefined
}

export interface HistoryQuery {
  /** One name only. */
  readonly sub?: string | undefined
  readonly limit?: number | undefined
  /** The number of the entry before which to begin. */
  readonly cursor?: string | undefined
}

export type Listed<Item> = { readonly kind: 'listed'; readonly pages: Pages<Item> } | NameRejection

/** Every allocation of a pool, page after page in the order of the subdomains. */
export const list =
  ({ reader, managedDomains }: Omit<ListDependencies, 'history'>) =>
  (poolDomain: string, { state, limit, cursor }: ListQuery): Listed<Allocation> =>
    validatePool(poolDomain, managedDomains) ?? {
      kind: 'listed',
      pages: paginate({
        fetch: (after, size) => reader.page(poolDomain, { after: after ?? '', limit: size, state }),
        positionOf: allocation => allocation.subdomain,
        start: cursor,
        limit,
      }),
    }

/** Every transition of a pool or of one name, page after page, newest first. */
export const readHistory =
  ({ history, managedDomains }: Omit<ListDependencies, 'reader'>) =>
  (poolDomain: string, { sub, limit, cursor }: HistoryQuery): Listed<EntryWithId> =>
    validatePool(poolDomain, managedDomains) ?? {
      kind: 'listed',
      pages: paginate({
        fetch: (before, size) =>
          history.page(poolDomain, {
            subdomain: sub,
            before: before === undefined ? undefined : Number(before),
            limit: size,
          }),
        positionOf: numbered => String(numbered.id),
        start: cursor,
        limit,
      }),
    }

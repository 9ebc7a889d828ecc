import { encodeCursor, type NameRecords, type NamesResponse, operations } from '@pool/contract'
import type { NameReader } from '../../allocation/name-details.ts'
import type { NameSearch } from '../../allocation/name-search.ts'
import { type Pools, validatePool } from '../../naming/naming.ts'
import type { NameInspection } from '../../reconciler/reconciler.ts'
import { getPoolDomain, type Handler, type Handlers, RETRY_AFTER_S, sendError, toSteps, validated } from '../request.ts'
import { toPlannedChange, toWireRecord } from './records.ts'

export interface NameOperations {
  readonly search: NameSearch
  readonly read: NameReader
  readonly reconciler: NameInspection
  readonly pools: () => Pools
}

const BUSY = 'Another replica is updating the zone; try again in a moment.'

/** The names of all pools, and one name, whether or not it is free. */
export const nameHandlers = ({
  search,
  read,
  reconciler,
  pools,
}: NameOperations): Pick<Handlers, 'searchNames' | 'describeName' | 'compareNameRecords'> => {
  /** Rejects other pools before it looks at the name. */
  const inPool = (handler: Handler): Handler => [
    async (c, next) => {
      const rejection = validatePool(getPoolDomain(c), pools())
      if (rejection) return sendError(c, rejection)
      await next()
      return undefined
    },
    ...toSteps(handler),
  ]
  return {
    searchNames: validated(operations.searchNames, async (c, { query }) => {
      const outcome = await search(query)
      if (outcome.kind === 'invalid-cursor') {
        return sendError(c, { ...outcome, detail: 'cursor must be the nextCursor of an earlier page of this search.' })
      }
      c.env.outcome = outcome.kind
      const body: NamesResponse = {
        names: [...outcome.names],
        ...(outcome.next === null ? {} : { nextCursor: encodeCursor(outcome.next) }),
      }
      return c.json(body, 200)
    }),
    describeName: inPool(
      validated(operations.describeName, async (c, { path: { domain: poolDomain, subdomain } }) => {
        c.env.outcome = 'found'
        return c.json(await read({ poolDomain, subdomain }), 200)
      }),
    ),
    compareNameRecords: inPool(
      validated(operations.compareNameRecords, async (c, { path: { domain: poolDomain, subdomain } }) => {
        const readAt = new Date().toISOString()
        const outcome = await reconciler.compareName(poolDomain, subdomain)
        if (outcome.kind === 'busy' || outcome.kind === 'unavailable') {
          const detail = outcome.kind === 'busy' ? BUSY : outcome.reason
          return sendError(c, { kind: 'dns-unavailable', detail, retryAfterSeconds: RETRY_AFTER_S })
        }
        if (outcome.kind !== 'compared') return sendError(c, outcome)
        c.env.outcome = outcome.kind
        const body: NameRecords = {
          poolDomain,
          subdomain,
          desired: outcome.desired.map(toWireRecord),
          found: outcome.found.map(toWireRecord),
          changes: outcome.changes.map(change => toPlannedChange(subdomain, change)),
          ...(outcome.conflict === null ? {} : { conflict: outcome.conflict }),
          readAt,
        }
        return c.json(body, 200)
      }),
    ),
  }
}

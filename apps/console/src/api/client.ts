import { AllocationClient } from '@pool/client/allocation'
import type { ListedName, NamesResponse } from '@pool/contract'
import { type LeaseRow, toLeaseRow } from '../domain/lease.ts'
import type { NameSearch } from '../domain/route.ts'

type Listener = () => void
const listeners = new Set<Listener>()

/** Calls `listener` whenever the service rejects the session. Returns a function that ends this. */
export const onSessionEnd = (listener: Listener): (() => void) => {
  listeners.add(listener)
  return () => void listeners.delete(listener)
}

/**
 * The client of the page. The cookie of the session authenticates it, which scripts cannot read. A page shows an error
 * sooner than a program gives up, and offers to try again.
 */
export const client = new AllocationClient({
  baseUrl: location.origin,
  retry: { maxAttempts: 3, minBackoffMs: 200, maxBackoffMs: 2_000 },
  hooks: {
    onAttemptEnd: ({ status, operation }) => {
      if (status === 401 && operation !== 'startSession') {
        for (const listener of listeners) listener()
      }
    },
  },
})

const KEY_BYTES = 16

/** 128 random bits in hexadecimal digits. `crypto.randomUUID` does not exist on pages that were loaded over plain HTTP. */
export const createIdempotencyKey = (): string =>
  Array.from(crypto.getRandomValues(new Uint8Array(KEY_BYTES)), byte => byte.toString(16).padStart(2, '0')).join('')

/** The most requests for one page: a search that finds little reads on for a while, and then shows what it has. */
const MAX_REQUESTS = 20

/** A page of names. A response can be short although others follow, so that several may be needed. */
export const searchNames = async (
  search: NameSearch,
  { cursor, limit, signal }: { cursor: string | undefined; limit: number; signal: AbortSignal },
): Promise<NamesResponse> => {
  const names: ListedName[] = []
  let next = cursor
  for (let requests = 0; requests < MAX_REQUESTS; requests += 1) {
    const page = await client.searchNames({ ...search, limit: limit - names.length, cursor: next }, { signal })
    names.push(...page.names)
    next = page.nextCursor
    if (next === undefined || names.length >= limit) break
  }
  return { names, ...(next === undefined ? {} : { nextCursor: next }) }
}

const PAGE_SIZE = 50

interface LeasePage {
  readonly rows: readonly LeaseRow[]
  readonly nextCursor?: string
}

/** The exact state of slots. */
export const readSlots = async (slots: readonly string[], signal: AbortSignal): Promise<readonly LeaseRow[]> => {
  if (slots.length === 0) return []
  const response = await client.listWitnessLeases({ slot: [...slots] }, { signal })
  const receivedAt = Date.now()
  return response.consistency === 'exact' ? response.leases.map(status => toLeaseRow(status, receivedAt)) : []
}

/** A page of the slots with a prefix, each with its exact state. */
export const readLeases = async ({
  prefix,
  cursor,
  signal,
}: {
  prefix: string
  cursor: string | undefined
  signal: AbortSignal
}): Promise<LeasePage> => {
  const page = await client.listWitnessLeases({ prefix, limit: PAGE_SIZE, cursor }, { signal })
  if (page.consistency !== 'eventual') return { rows: [] }
  const slots = page.leases.map(({ slot }) => slot)
  const rows = await readSlots(slots, signal)
  return { rows, ...(page.nextCursor === undefined ? {} : { nextCursor: page.nextCursor }) }
}

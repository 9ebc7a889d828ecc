import type { AllocationClient } from '@pool/client/allocation'
import { type LeaseRow, toLeaseRow } from '../domain/lease.ts'

const PAGE_SIZE = 50

interface LeasePage {
  readonly rows: readonly LeaseRow[]
  readonly nextCursor?: string
}

/** The exact state of slots. */
export const readSlots = async (
  client: AllocationClient,
  slots: readonly string[],
  signal: AbortSignal,
): Promise<readonly LeaseRow[]> => {
  if (slots.length === 0) return []
  const response = await client.listWitnessLeases({ slot: [...slots] }, { signal })
  const receivedAt = Date.now()
  return response.consistency === 'exact' ? response.leases.map(status => toLeaseRow(status, receivedAt)) : []
}

/** A page of the slots with a prefix, each with its exact state. */
export const readLeases = async (
  client: AllocationClient,
  { prefix, cursor, signal }: { prefix: string; cursor: string | undefined; signal: AbortSignal },
): Promise<LeasePage> => {
  const page = await client.listWitnessLeases({ prefix, limit: PAGE_SIZE, cursor }, { signal })
  if (page.consistency !== 'eventual') return { rows: [] }
  const slots = page.leases.map(({ slot }) => slot)
  const rows = await readSlots(client, slots, signal)
  return { rows, ...(page.nextCursor === undefined ? {} : { nextCursor: page.nextCursor }) }
}

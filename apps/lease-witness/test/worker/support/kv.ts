import { env } from 'cloudflare:workers'
import { type Lease, lease } from '@pool/contract/lease'

export const kvKey = (slot: string): string => `lease:${slot}`

/** The copy of a slot, or undefined. A value that is not a lease fails the test. */
export const readCopy = async (slot: string): Promise<Lease | undefined> => {
  const text = await env.OPENOVA_LEASES.get(kvKey(slot))
  return text === null ? undefined : lease.strict().parse(JSON.parse(text))
}

/** Writes a record as an older deployment did: without metadata, under the key that it used. */
export const putLegacyRecord = (name: string, record: unknown): Promise<void> =>
  env.OPENOVA_LEASES.put(kvKey(name), typeof record === 'string' ? record : JSON.stringify(record))

const down = () => Promise.reject(new Error('KV is down'))

/** A namespace in which every call fails. */
export const failingKv: Partial<KVNamespace> = { get: down, getWithMetadata: down, put: down, list: down }

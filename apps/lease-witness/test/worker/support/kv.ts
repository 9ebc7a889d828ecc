import { env } from 'cloudflare:workers'
import { type Lease, lease } from '@pool/contract/lease'

export const kvKey = (slot: string): string => `lease:${slot}`

/** The copy of a slot, undefined: none. Anything else than a lease fails the test. */
export const readCopy = async (slot: string): Promise<Lease | undefined> => {
  const text = await env.OPENOVA_LEASES.get(kvKey(slot))
  return text === null ? undefined : lease.strict().parse(JSON.parse(text))
}

/** A record as an older deployment left it: bare, under the key that it used. */
export const putLegacyRecord = (spelling: string, record: unknown): Promise<void> =>
  env.OPENOVA_LEASES.put(kvKey(spelling), typeof record === 'string' ? record : JSON.stringify(record))

const down = () => Promise.reject(new Error('KV is down'))

/** Workers KV, when nothing of it works. */
export const failingKv: Partial<KVNamespace> = { get: down, getWithMetadata: down, put: down, list: down }

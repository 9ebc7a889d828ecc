import { env } from 'cloudflare:workers'
import { type Lease, lease } from '@pool/contract/lease'

export const keyOf = (slot: string): string => `lease:${slot}`

/** The copy of a slot, undefined: none. Anything else than a lease fails the test. */
export const copyOf = async (slot: string): Promise<Lease | undefined> => {
  const text = await env.OPENOVA_LEASES.get(keyOf(slot))
  return text === null ? undefined : lease.strict().parse(JSON.parse(text))
}

/** A record as an older deployment left it: bare, under the key that it used. */
export const leave = (spelling: string, record: unknown): Promise<void> =>
  env.OPENOVA_LEASES.put(keyOf(spelling), typeof record === 'string' ? record : JSON.stringify(record))

const down = () => Promise.reject(new Error('KV is down'))

/** Workers KV, when nothing of it works. */
export const brokenKv: Partial<KVNamespace> = { get: down, getWithMetadata: down, put: down, list: down }

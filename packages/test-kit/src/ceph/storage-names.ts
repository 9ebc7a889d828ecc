import dns from 'node:dns'

/**
 * Imported by a process, with `--import` by the service. Names below `storage.test` resolve to this machine; `hel1` to
 * another address of it without a listener. Names below `nowhere.test` have no address, and the lookup of names below
 * `silent.test` never ends.
 */

/** A label has at most 63 characters (RFC 1035 section 2.3.4), so the system's resolver rejects this one locally. */
const nowhere = `${'a'.repeat(64)}.test`

type Done = (error: Error | null, addresses: unknown, family?: number) => void

const lookup = dns.lookup as unknown as (name: string, options: dns.LookupOptions, done: Done) => void

const ours = (name: string, options: dns.LookupOptions, done: Done): void => {
  if (name.endsWith('.silent.test')) return
  const address = name === 'hel1.storage.test' ? '127.0.0.2' : '127.0.0.1'
  if (name.endsWith('.nowhere.test')) lookup(nowhere, options, done)
  else if (!name.endsWith('.storage.test')) lookup(name, options, done)
  else if (options.all) process.nextTick(done, null, [{ address, family: 4 }])
  else process.nextTick(done, null, address, 4)
}

Object.assign(dns, { lookup: ours })

import dns from 'node:dns'

/**
 * Imported by a process, by `--import` if it is the service: names below `storage.test` are this machine, as the
 * system's resolver knows no such names. `hel1` is another address of it, where nobody listens. A name below
 * `nowhere.test` has no address, and one below `silent.test` is looked up for ever.
 */

/** A label has 63 characters at the most (RFC 1035 section 2.3.4): the system's resolver refuses it without the network. */
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

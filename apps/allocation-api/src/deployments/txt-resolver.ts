import { Resolver } from 'node:dns/promises'

export type TxtLookup =
  /** The texts of the TXT records of the name, each with its character strings joined (RFC 7208 section 3.3). */
  | { readonly kind: 'found'; readonly texts: readonly string[] }
  /** The name does not exist, or has no TXT record. */
  | { readonly kind: 'absent' }
  /** No resolver gave an answer about the name. `reason`: an error code, for people. */
  | { readonly kind: 'failed'; readonly reason: string }

export type LookUpTxt = (name: string) => Promise<TxtLookup>

export interface TxtResolverOptions {
  /** Addresses, with ports if they are not 53; empty: those of the operating system. */
  readonly servers: readonly string[]
  /** Milliseconds for the whole lookup. */
  readonly timeoutMs: number
}

const ATTEMPTS = 2

/** What a resolver answers if there is no such name or no such record. Every other error says nothing about the name. */
const ABSENT = ['ENOTFOUND', 'ENODATA']

const toCode = (error: unknown): string =>
  error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : 'unknown error'

/** Looks TXT records up with the protocol of DNS only: an entry in a hosts file proves nothing. Nothing is cached here. */
export const createTxtResolver =
  ({ servers, timeoutMs }: TxtResolverOptions): LookUpTxt =>
  async name => {
    // One resolver per lookup, so that a cancellation does not affect others.
    const resolver = new Resolver({ timeout: Math.ceil(timeoutMs / ATTEMPTS), tries: ATTEMPTS })
    if (servers.length > 0) resolver.setServers(servers)
    // Several servers, each with its attempts, could take longer.
    const deadline = setTimeout(() => resolver.cancel(), timeoutMs)
    try {
      // Absolute: the search list of the operating system must not apply.
      const records = await resolver.resolveTxt(`${name}.`)
      return { kind: 'found', texts: records.map(strings => strings.join('')) }
    } catch (error) {
      const code = toCode(error)
      if (ABSENT.includes(code)) return { kind: 'absent' }
      return { kind: 'failed', reason: code === 'ECANCELLED' ? 'ETIMEOUT' : code }
    } finally {
      clearTimeout(deadline)
    }
  }

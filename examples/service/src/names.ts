import { type AllocationClient, ProblemError } from '@pool/client/allocation'
import type { NameStore, ReservedName } from './name-store.ts'

/** The name is released, or its reservation has expired. Another client may have it by now. */
const isGone = (error: unknown): boolean =>
  error instanceof ProblemError && ['not-found', 'token-mismatch', 'reservation-expired'].includes(error.code)

/** How long a request waits for DNS. After that, the allocation API continues without it. */
const PUBLISH_WAIT_MS = 5_000

export interface PublishedName {
  readonly fqdn: string
  readonly isPublished: boolean
}

/** The names of the tenants of this service. Each method can be repeated after any failure, also after a crash. */
export class Names {
  readonly #client: AllocationClient
  readonly #store: NameStore
  readonly #pool: string

  constructor(client: AllocationClient, store: NameStore, pool: string) {
    this.#client = client
    this.#store = store
    this.#pool = pool
  }

  /** Reserves and commits the name with this address, or changes its address, and waits a moment for DNS. */
  async publish(subdomain: string, address: string, signal: AbortSignal): Promise<PublishedName> {
    const fqdn = `${subdomain}.${this.#pool}`
    const record = await this.#reserve(subdomain, signal)
    try {
      if (record.isCommitted || !(await this.#commit(subdomain, record, address, signal)))
        await this.#update(subdomain, record, address, signal)
    } catch (error) {
      // The service no longer has the name: the next attempt starts again with a new key.
      if (isGone(error)) await this.#store.remove(subdomain)
      throw error
    }
    const published = this.#client.waitUntilPublished(
      { domain: this.#pool, subdomain },
      { signal, deadlineMs: PUBLISH_WAIT_MS },
    )
    const isPublished = await published.then(
      () => true,
      () => false,
    )
    signal.throwIfAborted()
    return { fqdn, isPublished }
  }

  /** False: this service does not have the name. */
  async release(subdomain: string, signal: AbortSignal): Promise<boolean> {
    const record = await this.#store.read(subdomain)
    if (!record) return false
    const { key, reservationToken } = record
    try {
      // Without a token, a reserve whose response was lost can have a reservation, which expires.
      if (reservationToken)
        await this.#client.releaseName(
          { domain: this.#pool, subdomain, reservationToken },
          { idempotencyKey: `${key}-release`, signal },
        )
    } catch (error) {
      if (!isGone(error)) throw error
    }
    await this.#store.remove(subdomain)
    return true
  }

  /** Stores the key before the request and the token after it. */
  async #reserve(subdomain: string, signal: AbortSignal): Promise<ReservedName> {
    const record = (await this.#store.read(subdomain)) ?? { key: crypto.randomUUID() }
    const { key, reservationToken } = record
    if (reservationToken) return { ...record, reservationToken }
    await this.#store.write(subdomain, { key })
    const reserved = await this.#client.reserveName(
      { domain: this.#pool, subdomain, createdBy: 'example-service' },
      { idempotencyKey: `${key}-reserve`, signal },
    )
    const written = { key, reservationToken: reserved.reservationToken }
    await this.#store.write(subdomain, written)
    return written
  }

  /** False: a commit whose response was lost has taken effect, with another address. Each address has a key. */
  async #commit(subdomain: string, record: ReservedName, address: string, signal: AbortSignal): Promise<boolean> {
    const { key, reservationToken } = record
    const sovereignFQDN = `${subdomain}.${this.#pool}`
    let isCommit = true
    try {
      await this.#client.commitName(
        { domain: this.#pool, subdomain, reservationToken, sovereignFQDN, loadBalancerIP: address },
        { idempotencyKey: `${key}-commit-${address}`, signal },
      )
    } catch (error) {
      if (!(error instanceof ProblemError && error.code === 'already-active')) throw error
      isCommit = false
    }
    await this.#store.write(subdomain, { ...record, isCommitted: true })
    return isCommit
  }

  /** Each call has a new key: under a former one, the API would repeat the response to a request of the past. */
  async #update(
    subdomain: string,
    { reservationToken }: ReservedName,
    address: string,
    signal: AbortSignal,
  ): Promise<void> {
    await this.#client.updateName(
      { domain: this.#pool, subdomain, reservationToken, loadBalancerIP: address },
      { signal },
    )
  }
}

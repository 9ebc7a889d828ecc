import { type AllocationClient, ProblemError } from '@pool/client/allocation'
import type { NameStore } from './name-store.ts'

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

  /** Reserves and commits the name, unless that is done, and waits a moment for DNS. */
  async publish(subdomain: string, address: string, signal: AbortSignal): Promise<PublishedName> {
    const fqdn = `${subdomain}.${this.#pool}`
    const { key, reservationToken } = await this.#reserve(subdomain, signal)
    try {
      await this.#client.commitName(
        { domain: this.#pool, subdomain, reservationToken, sovereignFQDN: fqdn, loadBalancerIP: address },
        { idempotencyKey: `${key}-commit`, signal },
      )
    } catch (error) {
      // The reservation has ended without a commit: the next attempt starts again with a new key.
      if (error instanceof ProblemError && [404, 410].includes(error.status)) await this.#store.remove(subdomain)
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
      // 403: another client has the name by now.
      if (!(error instanceof ProblemError && [403, 404].includes(error.status))) throw error
    }
    await this.#store.remove(subdomain)
    return true
  }

  /** Stores the key before the request and the token after it. */
  async #reserve(subdomain: string, signal: AbortSignal): Promise<{ key: string; reservationToken: string }> {
    const record = (await this.#store.read(subdomain)) ?? { key: crypto.randomUUID() }
    const { key } = record
    if (record.reservationToken) return { key, reservationToken: record.reservationToken }
    await this.#store.write(subdomain, { key })
    const { reservationToken } = await this.#client.reserveName(
      { domain: this.#pool, subdomain, createdBy: 'example-service' },
      { idempotencyKey: `${key}-reserve`, signal },
    )
    await this.#store.write(subdomain, { key, reservationToken })
    return { key, reservationToken }
  }
}

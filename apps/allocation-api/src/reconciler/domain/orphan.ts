import type { RecordSet, RecordTemplate } from '../../dns/domain/rrset.ts'

/** Records that look like those of an active name, although no row explains them. */
export interface Orphan {
  readonly subdomain: string
  /** The address of all its records. */
  readonly address: string
  /** One record set for each name of the template, as the zone has them. */
  readonly records: readonly RecordSet[]
  /** Other record sets at or below the name. */
  readonly otherCount: number
}

/** Collects the record sets at and below a name without a row, and keeps only what is necessary to decide about it. */
export class OrphanCandidate {
  readonly #fqdn: string
  readonly #template: RecordTemplate
  #address: string | null = null
  /** By the position in the template. */
  #ttls: (number | undefined)[] = []
  #otherCount = 0
  #isMatch = true
  #isDelegated = false

  constructor(fqdn: string, template: RecordTemplate) {
    this.#fqdn = fqdn
    this.#template = template
  }

  add({ name, type, ttl, values }: RecordSet, { isServed }: { readonly isServed: boolean }): void {
    const relative = name === this.#fqdn ? '@' : name.slice(0, -this.#fqdn.length - 1)
    this.#isDelegated ||= type === 'NS' && relative === '@'
    const at = this.#template.names.indexOf(relative)
    const [address, ...others] = values
    if (at < 0 || type !== 'A' || !isServed) {
      this.#otherCount += 1
      return
    }
    this.#isMatch &&= others.length === 0 && this.#ttls[at] === undefined && address === (this.#address ?? address)
    this.#address = address ?? null
    this.#ttls[at] = ttl
  }

  /** Other servers, or another zone, answer for the name. */
  get isDelegated(): boolean {
    return this.#isDelegated
  }

  /** Null: the names of the template do not all have one A record, with the same address. */
  toOrphan(subdomain: string): Orphan | null {
    const address = this.#address
    if (!this.#isMatch || address === null) return null
    const records = this.#template.names.flatMap((relative, at): RecordSet[] => {
      const ttl = this.#ttls[at]
      const name = relative === '@' ? this.#fqdn : `${relative}.${this.#fqdn}`
      return ttl === undefined ? [] : [{ name, type: 'A', ttl, values: [address] }]
    })
    if (records.length < this.#template.names.length) return null
    return { subdomain, address, records, otherCount: this.#otherCount }
  }
}

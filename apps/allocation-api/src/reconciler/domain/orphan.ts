import type { Target } from '@pool/contract'
import { mergeRecordSets, type RecordSet } from '../../dns/domain/rrset.ts'
import { canBeOfTarget, findTarget, type RecordTemplate } from '../../dns/domain/target.ts'

/** Records that look like those of an active name, although no row explains them. */
export interface Orphan {
  readonly subdomain: string
  readonly target: Target
  /** The record sets of the target, as the zone has them. */
  readonly records: readonly RecordSet[]
  /** Other record sets at or below the name. */
  readonly otherCount: number
}

/** Collects the record sets at and below a name without a row, and keeps only what is necessary to decide about it. */
export class OrphanCandidate {
  readonly #fqdn: string
  readonly #template: RecordTemplate
  #records: readonly RecordSet[] = []
  #otherCount = 0
  #isDelegated = false

  constructor(fqdn: string, template: RecordTemplate) {
    this.#fqdn = fqdn
    this.#template = template
  }

  add(set: RecordSet, { isServed }: { readonly isServed: boolean }): void {
    this.#isDelegated ||= set.type === 'NS' && set.name === this.#fqdn
    if (isServed && canBeOfTarget(set, this.#fqdn, this.#template)) {
      this.#records = mergeRecordSets([...this.#records, set])
    } else this.#otherCount += 1
  }

  /** Other servers, or another zone, answer for the name. */
  get isDelegated(): boolean {
    return this.#isDelegated
  }

  /** Null: the name does not have every record set of a target. */
  toOrphan(subdomain: string): Orphan | null {
    const found = findTarget(this.#fqdn, this.#records, this.#template)
    if (!found) return null
    const { target, records } = found
    return { subdomain, target, records, otherCount: this.#otherCount + this.#records.length - records.length }
  }
}

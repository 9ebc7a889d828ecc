import type { Attributes } from './value.ts'

/** What the provider does for one type of resource. */
export interface Resource {
  /** Makes or changes it, and answers what the plan left open. */
  write(planned: Attributes, prior: Attributes | null): Attributes
  /** The state as it is now, or null when it is gone. */
  read(state: Attributes): Attributes | null
  remove(state: Attributes): void
  /** The part of a state that the id of an import says. */
  named(parts: readonly string[]): Attributes
  /** Why a configuration cannot be right, or null. */
  fault?(config: Attributes): string | null
}

import type { Schema } from './schema.ts'
import type { Attributes } from './value.ts'

type Later<Answer> = Answer | Promise<Answer>

/** What a provider does for one type of resource. */
export interface Resource {
  /** Makes or changes it, and answers what the plan left open. */
  write(planned: Attributes, prior: Attributes | null): Later<Attributes>
  /** The state as it is now, or null when it is gone. */
  read(state: Attributes): Later<Attributes | null>
  remove(state: Attributes): Later<void>
  /** The part of a state that the id of an import says. */
  named(id: string): Later<Attributes>
  /** Why a configuration cannot be right, and of which attribute; or null. */
  fault?(config: Attributes): { attribute: string; detail: string } | null
}

/** A provider as Terraform sees it: what can be configured, and what is done then. */
export interface Provider {
  /** Its name for people, in the refusals of what is behind it. */
  readonly name: string
  /** Its address in a registry: cloudflare/cloudflare. */
  readonly source: string
  readonly schema: Schema
  readonly resources: { readonly [type: string]: { readonly schema: Schema; readonly behind: Resource } }
  /** Told before anything is asked of a resource. */
  configure?(config: Attributes): void
}

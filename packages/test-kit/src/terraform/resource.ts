import type { Attributes, Schema } from './schema.ts'

/** An error response of the API: the status and, if documented, its error code, such as `404 Not Found (10007)`. */
export class ApiError extends Error {
  readonly status: number
  readonly code: number
  readonly text: string

  constructor(status: string, text: string) {
    super(`${status}: ${text}`)
    this.status = Number.parseInt(status, 10)
    this.code = Number(/\((\d+)\)/.exec(status)?.[1] ?? 0)
    this.text = text
  }
}

/** Diagnostics of a provider. `state`: what a creation has left behind; Terraform keeps it as tainted. */
export class ProviderError extends Error {
  override readonly name = 'ProviderError'
  readonly summaries: readonly string[]
  readonly state: Attributes | null

  constructor(summaries: readonly string[], state: Attributes | null = null) {
    super(summaries.join('\n'))
    this.summaries = summaries
    this.state = state
  }
}

type MaybePromise<Answer> = Answer | Promise<Answer>

/** The operations of a provider for one resource type. */
export interface ResourceBehavior {
  /**
   * Creates or updates the resource. Returns the new state, with the values that the plan left unknown. `config` is the
   * configuration as written; unlike the plan, it is not affected by `ignore_changes`.
   */
  write(planned: Attributes, prior: Attributes | null, config: Attributes): MaybePromise<Attributes>
  /** Returns the current state, or null if the resource does not exist. */
  read(state: Attributes): MaybePromise<Attributes | null>
  remove(state: Attributes): MaybePromise<void>
  /** Returns the part of the state that an import id determines. */
  import(id: string): MaybePromise<Attributes>
  /** Returns a validation error of the configuration, or null. `summary`: default `Invalid attribute`. */
  validate?(config: Attributes): { attribute: string; summary?: string; detail: string } | null
}

export interface Resource {
  readonly schema: Schema
  /** Version of the schema. Default: 0. A state of an older version is upgraded, a state of a newer one rejected. */
  readonly version?: number
  readonly behavior: ResourceBehavior
}

export interface DataSource {
  readonly schema: Schema
  /** Returns the configuration with the computed values. */
  read(config: Attributes): MaybePromise<Attributes>
}

/** A provider: its schema, its resources and its data sources. */
export interface Provider {
  /** Display name, for error messages. */
  readonly name: string
  /** Address in a registry, such as cloudflare/cloudflare. */
  readonly source: string
  readonly schema: Schema
  readonly resources: { readonly [type: string]: Resource }
  /** Whether the provider does not tell null from false, 0 and an empty text, as those of protocol 5 with the SDK. */
  readonly hasLegacyTypes?: boolean
  readonly dataSources?: { readonly [type: string]: DataSource }
  /** Called before any operation of a resource or data source. */
  configure?(config: Attributes): void
  /** Called when Terraform was interrupted. */
  onStop?(): void
}

/** Parses an import id such as `one/two` into attributes. */
export const parseImportId = (id: string, ...names: readonly string[]): Attributes => {
  const parts = id.split('/')
  return Object.fromEntries(names.map((name, index) => [name, parts[index] ?? null]))
}

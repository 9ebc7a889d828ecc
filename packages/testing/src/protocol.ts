/** What the test process and the host process of a service send to each other. */

/** Which requests a fault applies to. Absent fields match every request. */
export interface RequestFilter {
  /** An HTTP method in capitals, or several. */
  readonly method?: string | readonly string[]
  /** The whole path without the query, percent-encoded as the client sends it; or a pattern that it matches. */
  readonly path?: string | RegExp
}

/** The requests after which a service can be killed. */
export const WRITE_METHODS: readonly string[] = ['PUT', 'POST', 'PATCH', 'DELETE']

export type FaultKind = 'drop-request' | 'drop-response' | 'delay' | 'partition' | 'kill-after-write'

export interface FaultSpec {
  readonly kind: FaultKind
  readonly filter: RequestFilter
  /** Of a delay. */
  readonly ms: number
}

export interface AllocationApiSpec {
  readonly kind: 'allocation-api'
  readonly pools: readonly string[]
  readonly env: Readonly<Record<string, string>>
}

export interface WitnessSpec {
  readonly kind: 'lease-witness'
  readonly on: 'workerd' | 'postgres'
  readonly tokens: readonly string[]
  readonly env: Readonly<Record<string, string>>
}

export type ServiceSpec = AllocationApiSpec | WitnessSpec

export interface ServiceAddress {
  readonly url: string
  readonly operatorUrl?: string
  readonly operatorToken?: string
  readonly dnsServer?: string
  readonly databaseUrl?: string
}

/** The calls that a host answers. Times are milliseconds. */
export interface HostMethods {
  start(spec: ServiceSpec): Promise<ServiceAddress>
  addFault(spec: FaultSpec): Promise<number>
  /** Resolves when the fault has occurred for the first time. */
  awaitFault(fault: number): Promise<void>
  cancelFault(fault: number): Promise<void>
  readClock(): Promise<number>
  moveClock(ms: number): Promise<void>
  kill(): Promise<void>
  readLog(): Promise<readonly string[]>
  stop(): Promise<void>
}

export interface HostCall {
  readonly id: number
  readonly method: keyof HostMethods
  readonly args: readonly unknown[]
}

/** The answer to the call with the same id. */
export type HostAnswer =
  | { readonly id: number; readonly result: unknown }
  /** `message` is for the person who runs the test; `isRange`: an argument was out of its range. */
  | { readonly id: number; readonly message: string; readonly isRange: boolean }

/** The component that a fault affects. Concurrent faults affect different components. */
export type Part = 'api' | 'database' | 'dns' | 'witness' | 'zone'

/**
 * The calls whose errors are attributable to a fault: to its replica, only its lists, to every replica, only those that need
 * locked names, to the witness, or none.
 */
export type ErrorScope = 'replica' | 'lists of the replica' | 'replicas' | 'locked names' | 'witness' | 'nothing'

/** What must work again before the system counts as recovered. */
export type Recovery = 'replica' | 'replicas' | 'witness' | 'records' | 'zone'

export interface FaultKind {
  readonly part: Part
  readonly errorScope: ErrorScope
  readonly recovery: Recovery
  /** Range of its duration, in milliseconds. */
  readonly durationMs: readonly [min: number, max: number]
}

const kind = (part: Part, explains: ErrorScope, recovery: Recovery, min: number, max: number): FaultKind => ({
  part,
  errorScope: explains,
  recovery,
  durationMs: [min, max],
})

/**
 * A frozen replica and one with silent connections can hold row locks, so errors of the other replicas are attributable to
 * them too. No error is attributable to a provider fault, to drift or to a wrong clock.
 */
export const faultKinds = {
  'replica killed': kind('api', 'replica', 'replica', 200, 1_500),
  'replica terminated': kind('api', 'replica', 'replica', 200, 1_000),
  'replica frozen': kind('api', 'replicas', 'replica', 2_000, 6_000),
  // Longer than the zone lock and the lease of a deployment last.
  'replica frozen for long': kind('api', 'replicas', 'replica', 33_000, 35_000),
  'replica with a wrong clock': kind('api', 'nothing', 'replica', 4_000, 8_000),
  'readers stalled': kind('api', 'lists of the replica', 'replica', 3_000, 7_000),
  'Postgres crashed': kind('database', 'replicas', 'replicas', 200, 2_500),
  'Postgres hung': kind('database', 'replicas', 'replicas', 1_000, 6_000),
  'Postgres slow': kind('database', 'replicas', 'replicas', 3_000, 7_000),
  'Postgres connections cut': kind('database', 'replicas', 'replicas', 500, 3_000),
  'Postgres silent for one replica': kind('database', 'replicas', 'replica', 2_000, 7_000),
  'Postgres connections abandoned': kind('database', 'replicas', 'replica', 3_000, 5_000),
  'standby promoted': kind('database', 'replicas', 'replicas', 200, 3_000),
  'Postgres read-only': kind('database', 'replicas', 'replicas', 500, 5_000),
  // By another program, for longer than the service waits.
  'names locked': kind('database', 'locked names', 'replicas', 2_000, 7_000),
  'records locked': kind('database', 'locked names', 'replicas', 2_000, 7_000),
  // As VACUUM does.
  'tables locked': kind('database', 'nothing', 'replicas', 3_000, 7_000),
  'DNS provider killed': kind('dns', 'nothing', 'records', 500, 4_000),
  'DNS provider hung': kind('dns', 'nothing', 'records', 2_000, 7_000),
  'DNS provider slow': kind('dns', 'nothing', 'records', 3_000, 7_000),
  'DNS provider answers 503': kind('dns', 'nothing', 'records', 1_000, 5_000),
  'DNS provider cut off': kind('dns', 'nothing', 'records', 500, 3_000),
  'records edited by hand': kind('zone', 'nothing', 'zone', 100, 1_000),
  'witness killed': kind('witness', 'witness', 'witness', 200, 2_000),
  'workerd killed': kind('witness', 'witness', 'witness', 100, 500),
  'workerd frozen': kind('witness', 'witness', 'witness', 1_000, 5_000),
} as const satisfies Readonly<Record<string, FaultKind>>

export type FaultName = keyof typeof faultKinds
export const faultNames = Object.keys(faultKinds) as FaultName[]

/** How long after a fault a call may still fail because of it: timeouts expire and pools reconnect. */
export const RECOVERY_WINDOW_MS = 5_000

/** The faults during which the database accepts no writes, but may respond. */
export const readOnlyFaults: ReadonlySet<FaultName> = new Set(['Postgres read-only', 'standby promoted'])

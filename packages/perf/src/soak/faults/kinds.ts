/** What is hit. Two faults at once never hit one part. */
export type Part = 'api' | 'database' | 'dns' | 'witness' | 'zone'

/** Whose failed calls a fault explains: those to its own replica, to every replica, to the witness, or nobody's. */
export type Explains = 'replica' | 'replicas' | 'witness' | 'nothing'

/** What has to answer well again before a fault counts as over. */
export type Recovery = 'replica' | 'replicas' | 'witness' | 'records' | 'zone'

export interface FaultKind {
  readonly part: Part
  readonly explains: Explains
  readonly recovery: Recovery
  /** How long it lasts, in milliseconds, from and to. */
  readonly holdMs: readonly [least: number, most: number]
}

const kind = (part: Part, explains: Explains, recovery: Recovery, least: number, most: number): FaultKind => ({
  part,
  explains,
  recovery,
  holdMs: [least, most],
})

/**
 * A frozen replica, and one whose connections are silent, may hold locks of rows that the others want: what these answer
 * is explained by it too. The provider's faults, drift and a clock that is wrong explain no failed call at all.
 */
export const faultKinds = {
  'replica killed': kind('api', 'replica', 'replica', 200, 1_500),
  'replica terminated': kind('api', 'replica', 'replica', 200, 1_000),
  'replica frozen': kind('api', 'replicas', 'replica', 2_000, 6_000),
  // Longer than a claim of a zone is held, and than the lease of a deployment.
  'replica frozen for long': kind('api', 'replicas', 'replica', 33_000, 35_000),
  'replica with a wrong clock': kind('api', 'nothing', 'replica', 4_000, 8_000),
  'Postgres crashed': kind('database', 'replicas', 'replicas', 200, 2_500),
  'Postgres hung': kind('database', 'replicas', 'replicas', 1_000, 6_000),
  'Postgres slow': kind('database', 'replicas', 'replicas', 3_000, 7_000),
  'Postgres connections cut': kind('database', 'replicas', 'replicas', 500, 3_000),
  'Postgres silent for one replica': kind('database', 'replicas', 'replica', 2_000, 7_000),
  'Postgres connections abandoned': kind('database', 'replicas', 'replica', 3_000, 5_000),
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

/** A call fails this long after the end of a fault at the latest, in milliseconds: timeouts run out, pools reconnect. */
export const RECOVERY_WINDOW_MS = 5_000

export { DEFAULT_DURATIONS, type ElectionDurations } from './domain/durations.ts'
export type { StopReason } from './domain/election.ts'
export {
  type ElectorHealth,
  type ElectorMetrics,
  type LeaderCallbacks,
  LeaseElector,
  type LeaseElectorOptions,
} from './elector.ts'
export { type Guarded, type GuardedResource, guard, StaleFencingTokenError } from './guard.ts'
export { createIdentity } from './identity.ts'
export type { CallResult, LeaseCallOptions, LeaseCalls, LeaseWriteInput } from './lease-calls.ts'
export {
  LeaseClient,
  type LeaseGrantRequest,
  type LeaseReading,
  type LeaseWrite,
  type LeaseWriteResult,
} from './lease-client.ts'
export { PreferenceElector, type PreferenceElectorOptions } from './preference.ts'
export { RenewalBatch, type RenewalBatchOptions } from './renewal-batch.ts'
export { type LeadershipContext, LeadershipLostError } from './tenure-context.ts'
export { type WithLeaseOptions, withLease } from './with-lease.ts'

import type { operations } from '@pool/contract'
import type { CallRule } from '../options.ts'

export type AllocationOperation = (typeof operations)[number]
export type AllocationOperationId = AllocationOperation['id']

const SECOND_MS = 1_000
const MINUTE_MS = 60 * SECOND_MS

/** A read, or a call that changes nothing when it is repeated. */
const repeatable: CallRule = { repeat: 'repeatable' }
const underKey: CallRule = { repeat: 'under-key' }
/** A second request could do more than the first: cancel and then delete, or lift a claim that has a new owner. */
const once: CallRule = { repeat: 'if-rejected' }
/** The response is as long as a table. */
const longRead: CallRule = { repeat: 'repeatable', deadlineMs: 10 * MINUTE_MS }
/** Reads or writes a zone of any size, and waits for the DNS provider. */
const zone: CallRule = { repeat: 'repeatable', attemptTimeoutMs: 2 * MINUTE_MS, deadlineMs: 5 * MINUTE_MS }

/** How each operation is repeated, and the limits of the slow ones. */
export const callRules: Readonly<Record<AllocationOperationId, CallRule>> = {
  listReservedLabels: repeatable,
  checkName: repeatable,
  reserveName: underKey,
  commitName: underKey,
  updateName: underKey,
  liftCoolOff: once,
  // A repeated renewal extends the reservation from a later moment.
  renewReservation: repeatable,
  releaseName: underKey,
  getAllocation: repeatable,
  listAllocations: longRead,
  readHistory: longRead,
  convergeZone: zone,
  republishZone: zone,
  // After a success, a repetition is 409 not-stopped.
  resumeZone: { ...zone, repeat: 'if-rejected' },
  listFormerRecords: repeatable,
  adoptOrphans: zone,
  removeOrphans: zone,
  // It checks credentials and looks up a domain before it responds.
  createDeployment: { ...underKey, attemptTimeoutMs: 30 * SECOND_MS },
  listDeployments: repeatable,
  readDeploymentHistory: repeatable,
  getDeployment: repeatable,
  applyDeployment: { ...once, attemptTimeoutMs: 30 * SECOND_MS },
  // Terraform plans while the client waits; the service permits it 30 minutes by default.
  planDeployment: { repeat: 'if-rejected', attemptTimeoutMs: 31 * MINUTE_MS, deadlineMs: 32 * MINUTE_MS },
  destroyDeployment: { ...once, attemptTimeoutMs: 30 * SECOND_MS },
  unlockDeployment: { ...once, attemptTimeoutMs: 2 * MINUTE_MS, deadlineMs: 3 * MINUTE_MS },
  removeDeployment: once,
  followDeployment: repeatable,
  listBucketClaims: repeatable,
  liftBucketClaim: once,
  exportInstallation: repeatable,
  // Its body can be a stream, which can be sent once.
  importInstallation: { repeat: 'never', attemptTimeoutMs: 60 * MINUTE_MS, deadlineMs: 60 * MINUTE_MS },
  startSession: once,
  getSession: repeatable,
  endSession: repeatable,
  getSettings: repeatable,
  searchNames: repeatable,
  describeName: repeatable,
  // They read the zone.
  compareNameRecords: { ...repeatable, attemptTimeoutMs: 30 * SECOND_MS },
  planNameAction: { ...repeatable, attemptTimeoutMs: 30 * SECOND_MS },
  listZones: repeatable,
  readOverview: repeatable,
  followChanges: repeatable,
  listWitnessLeases: repeatable,
  readWitnessHistory: repeatable,
  // After a success, a repetition is 409 lease-changed.
  releaseWitnessLease: once,
  createDomainChallenge: underKey,
  checkDomain: { ...underKey, isRead: true },
  validateObjectStorageKeys: { ...repeatable, isRead: true },
  validateToken: { ...repeatable, isRead: true },
  getHealth: repeatable,
  getLiveness: repeatable,
  getReadiness: repeatable,
  getMetrics: repeatable,
  getOpenApiDocument: repeatable,
  getApiReference: repeatable,
  getApiReferenceAsset: repeatable,
}

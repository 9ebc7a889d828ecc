import { type CallId, callOperations, type Operation } from '@pool/contract'
import type { RepeatRule } from '../domain/retry.ts'
import type { CallRule } from '../options.ts'

const SECOND_MS = 1_000
const MINUTE_MS = 60 * SECOND_MS

type Limits = Omit<CallRule, 'repeat'>

/** The response is as long as a table. */
const longRead: Limits = { deadlineMs: 10 * MINUTE_MS }
/** Reads or writes a zone of any size, and waits for the DNS provider. */
const zone: Limits = { attemptTimeoutMs: 2 * MINUTE_MS, deadlineMs: 5 * MINUTE_MS }
/** Reads a zone, or checks credentials and looks up a domain, before it responds. */
const slowStart: Limits = { attemptTimeoutMs: 30 * SECOND_MS }

/** The limits of the slow operations. */
const slowCalls: Readonly<Partial<Record<CallId, Limits>>> = {
  listAllocations: longRead,
  readHistory: longRead,
  convergeZone: zone,
  republishZone: zone,
  resumeZone: zone,
  adoptOrphans: zone,
  removeOrphans: zone,
  createDeployment: slowStart,
  applyDeployment: slowStart,
  destroyDeployment: slowStart,
  compareNameRecords: slowStart,
  putRecord: slowStart,
  unlockDeployment: { attemptTimeoutMs: 2 * MINUTE_MS, deadlineMs: 3 * MINUTE_MS },
  // Terraform plans while the client waits; the service permits it 30 minutes by default.
  planDeployment: { attemptTimeoutMs: 31 * MINUTE_MS, deadlineMs: 32 * MINUTE_MS },
  importInstallation: { attemptTimeoutMs: 60 * MINUTE_MS, deadlineMs: 60 * MINUTE_MS },
}

export const takesKey = ({ headers }: Operation): boolean => headers !== undefined && 'Idempotency-Key' in headers.shape

const toRepeatRule = (operation: Operation): RepeatRule => {
  // A body that is not JSON can be a stream, which can be sent once.
  if (operation.body?.mediaType !== undefined) return 'never'
  if (takesKey(operation)) return 'under-key'
  return operation.method === 'get' || operation.isRead || operation.isRepeatable ? 'repeatable' : 'if-rejected'
}

/** Of a dry run of an operation that changes one name: it reads the zone. */
export const dryRunRule: CallRule = { repeat: 'repeatable', ...slowStart }

/** How an operation is repeated, and its limits. */
export const toCallRule = (id: CallId): CallRule => ({ repeat: toRepeatRule(callOperations[id]), ...slowCalls[id] })

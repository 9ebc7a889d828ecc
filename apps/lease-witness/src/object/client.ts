import { MAX_SLOT_BYTES } from '@pool/contract/lease'
import { withTimeout } from '@pool/runtime/database/time'
import type { SlotAddress } from '../lease/request.ts'
import type {
  HistoryOutcome,
  LeaseService,
  LeaseStatusOutcome,
  ReadOutcome,
  SlotUnavailable,
  WriteOutcome,
} from '../lease-service.ts'
import type { ClockStandsStill, SlotCall } from './domain/clock.ts'
import type { LeaseObject } from './lease-object.ts'
import { createObjectLookup, type ObjectLookupEnv } from './lookup.ts'
import { waitForObject } from './waits.ts'

/** Properties that the platform sets on the error of a failed call to a Durable Object. */
interface ErrorFlags {
  /** Thrown inside the object: by its code, or by the platform when it reaches a limit or a quota. */
  readonly remote?: unknown
  readonly retryable?: unknown
  readonly overloaded?: unknown
  readonly durableObjectReset?: unknown
}

/**
 * Classifies a failed call to an object. Undefined: a bug of ours. The object's code has no `throw`, so a bug in it is an
 * error of the language, such as a TypeError. Any other failure comes from the platform and is temporary. Then it is
 * unknown whether a write took effect, so the service never retries it.
 */
export const toUnavailable = (error: unknown): SlotUnavailable | undefined => {
  const flags: ErrorFlags = typeof error === 'object' && error !== null ? error : {}
  const reason = String(error)
  if (flags.overloaded === true) return { kind: 'overloaded', reason }
  const isPlatform = flags.retryable === true || flags.durableObjectReset === true || flags.remote !== true
  const isBug = !isPlatform && error instanceof Error && error.name !== 'Error'
  return isBug ? undefined : { kind: 'lease-unavailable', reason }
}

const HEALTH_TIMEOUT_MS = 2_000
/** Longer than any slot, so it is not the object of a lease. */
const HEALTH_OBJECT = 'health'.padEnd(MAX_SLOT_BYTES + 1, '-')

/** The leases in Durable Objects: one object per slot, named by the decoded slot. */
export const createLeaseService = (env: ObjectLookupEnv): LeaseService => {
  const toObject = createObjectLookup(env)
  const answer = async <Outcome>(execute: () => Promise<Outcome>): Promise<Outcome | SlotUnavailable> => {
    try {
      return await execute()
    } catch (error) {
      const unavailable = toUnavailable(error)
      if (!unavailable) throw error
      return unavailable
    }
  }
  /** Once more if the object has not executed the call, so also a write. */
  const call = <Outcome extends LeaseStatusOutcome | ReadOutcome | WriteOutcome | HistoryOutcome>(
    address: SlotAddress,
    method: (object: DurableObjectStub<LeaseObject>, target: SlotCall) => Promise<Outcome | ClockStandsStill>,
  ): Promise<Outcome | SlotUnavailable> =>
    answer(async () => {
      const attempt = () => method(toObject(address.slot), { ...address, sentAt: Date.now() })
      const first = await attempt()
      if (first.kind !== 'clock-stands-still') return first
      // Fails if the object restarts. Another call may have restarted it.
      await toObject(address.slot)
        .restart(address)
        .catch(() => {})
      const second = await attempt()
      if (second.kind !== 'clock-stands-still') return second
      return { kind: 'lease-unavailable', reason: 'the clock of the object stands still' }
    })
  const readStatus = (address: SlotAddress): Promise<LeaseStatusOutcome> =>
    call<LeaseStatusOutcome>(address, async (object, target) => await object.readStatus(target)).catch(error => ({
      kind: 'internal-error',
      error,
    }))
  return {
    read: (address, known) => call<ReadOutcome>(address, async (object, target) => await object.read(target, known)),
    wait: (address, request) => call<ReadOutcome>(address, (object, target) => waitForObject(object, target, request)),
    write: (address, request, caller) =>
      call<WriteOutcome>(address, async (object, target) => await object.write(target, request, caller)),
    history: address => call<HistoryOutcome>(address, async (object, target) => await object.history(target)),
    readMany: addresses => Promise.all(addresses.map(readStatus)),
    checkHealth: async () => {
      const response = answer(async () => await toObject(HEALTH_OBJECT).checkHealth())
      return (await withTimeout(response, HEALTH_TIMEOUT_MS).catch(() => false)) === true
    },
  }
}

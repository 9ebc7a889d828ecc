import type { WorkerEnv } from '../env.ts'
import type { SlotAddress } from '../lease/request.ts'
import type { HistoryOutcome, LeaseService, ReadOutcome, SlotUnavailable, WriteOutcome } from '../lease-service.ts'
import type { LeaseObject } from './lease-object.ts'

/** Properties that the platform sets on the error of a failed call to a Durable Object. */
interface ErrorFlags {
  /** The object's own code threw. */
  readonly remote?: unknown
  readonly retryable?: unknown
  readonly overloaded?: unknown
  readonly durableObjectReset?: unknown
}

/**
 * Classifies a failed call to an object. Undefined: its code threw, which is a bug of ours. Any other failure comes from
 * the platform and is temporary. Then it is unknown whether a write took effect, so the service never retries it.
 */
export const toUnavailable = (error: unknown): SlotUnavailable | undefined => {
  const flags: ErrorFlags = typeof error === 'object' && error !== null ? error : {}
  if (flags.overloaded === true) return { kind: 'overloaded' }
  const isPlatform = flags.retryable === true || flags.durableObjectReset === true || flags.remote !== true
  return isPlatform ? { kind: 'lease-unavailable' } : undefined
}

/** The leases in Durable Objects: one object per slot, named by the decoded slot. */
export const createLeaseService = (env: WorkerEnv, onError: (error: unknown) => void): LeaseService => {
  const call = async <Outcome>(
    { slot }: SlotAddress,
    method: (object: DurableObjectStub<LeaseObject>) => Promise<Outcome>,
  ): Promise<Outcome | SlotUnavailable> => {
    try {
      return await method(env.LEASES.getByName(slot))
    } catch (error) {
      const unavailable = toUnavailable(error)
      if (!unavailable) throw error
      onError(error)
      return unavailable
    }
  }
  return {
    read: (address, request) => call<ReadOutcome>(address, async object => await object.read(address, request)),
    write: (address, request) => call<WriteOutcome>(address, async object => await object.write(address, request)),
    history: address => call<HistoryOutcome>(address, async object => await object.history(address)),
    cancelWait: async (address, waitId) => void (await call(address, async object => await object.cancelWait(waitId))),
  }
}

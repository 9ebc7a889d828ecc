import type { Env } from '../env.ts'
import type { SlotAddress } from '../lease/slot-name.ts'
import type { HistoryOutcome, ReadOutcome, Unavailable, Witness, WriteOutcome } from '../lease-service.ts'
import { objectFault } from './do-errors.ts'
import type { LeaseObject } from './lease-object.ts'

/** The slots behind Durable Objects, each named by its decoded slot. */
export const slots = (env: Env, onFault: (error: unknown) => void): Witness => {
  const call = async <Outcome>(
    { slot }: SlotAddress,
    ask: (object: DurableObjectStub<LeaseObject>) => Promise<Outcome>,
  ): Promise<Outcome | Unavailable> => {
    try {
      return await ask(env.LEASES.getByName(slot))
    } catch (error) {
      const fault = objectFault(error)
      if (!fault) throw error
      onFault(error)
      return fault
    }
  }
  return {
    read: (at, request) => call<ReadOutcome>(at, async object => await object.read(at, request)),
    write: (at, request) => call<WriteOutcome>(at, async object => await object.write(at, request)),
    history: at => call<HistoryOutcome>(at, async object => await object.history(at)),
    forget: async (at, waitId) => void (await call(at, async object => await object.forget(waitId))),
  }
}

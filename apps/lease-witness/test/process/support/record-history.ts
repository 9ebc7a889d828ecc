import { setTimeout as sleep } from 'node:timers/promises'
import { type LeaseConnection, openLeaseConnections } from '@pool/test-kit/lease-connection.ts'
import { Controller, invoke } from '@pool/test-kit/linearizability/controller.ts'
import type { Invocation, Operation } from '@pool/test-kit/linearizability/history.ts'
import { createPrng, type Prng } from '@pool/test-kit/prng.ts'

export interface LoadOptions {
  readonly port: number
  readonly operations: number
  readonly seed: number
  /** Ends the load even if fewer operations are done. */
  readonly timeoutMs: number
}

const CLIENTS = 16
const SLOTS = 20
/** All clients prefer the same slot for this many operations, then the next. */
const OPERATIONS_PER_CONTENDED_SLOT = 1_000
/** On average, per client. */
const OPERATIONS_BETWEEN_PAUSES = 200
const MAX_EXTRA_PAUSE_MS = 500
/** The longest time that a request usually takes to reach the decision. */
const REQUEST_MS = 6

const slots = Array.from({ length: SLOTS }, (_, i) => `region-pair-${i}`)

/** Half of the pauses outlast the lease. The others end so that the next write is decided when the lease expires. */
const pauseMs = (prng: Prng, leaseEnd: number): number =>
  Math.max(0, leaseEnd - Date.now() + (prng.chance(0.5) ? prng.below(MAX_EXTRA_PAUSE_MS) : -prng.below(REQUEST_MS)))

/** Runs sixteen controllers, each on its own connection, and records all their operations. */
export const recordHistory = async ({ port, operations, seed, timeoutMs }: LoadOptions): Promise<Operation[]> => {
  const history: Operation[] = []
  const deadline = performance.now() + timeoutMs
  const isOver = () => history.length >= operations || performance.now() > deadline

  const run = async (connection: LeaseConnection, controller: Controller, prng: Prng) => {
    const perform = async (slot: string, invocation: Invocation) => {
      const operation = await invoke(connection, slot, invocation)
      history.push(operation)
      controller.observe(operation)
    }
    while (!isOver()) {
      const contended = slots[Math.floor(history.length / OPERATIONS_PER_CONTENDED_SLOT) % SLOTS]
      const slot = controller.chooseSlot(slots, contended)
      await perform(slot, controller.nextInvocation(slot))
      if (!prng.chance(1 / OPERATIONS_BETWEEN_PAUSES)) continue
      const own = controller.heldSlots
      await sleep(pauseMs(prng, controller.getExpiry(own[0] ?? '') ?? Date.now()))
      for (const slot of own) await perform(slot, controller.staleInvocation(slot))
    }
  }

  const connections = await openLeaseConnections(port, CLIENTS)
  try {
    const clients = connections.map((connection, i) => {
      const prng = createPrng(seed * CLIENTS + i)
      return run(connection, new Controller(`region-${i}`, prng), prng)
    })
    await Promise.all(clients)
  } finally {
    for (const connection of connections) connection[Symbol.dispose]()
  }
  return history
}

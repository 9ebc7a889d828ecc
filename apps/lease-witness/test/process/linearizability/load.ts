import { setTimeout as sleep } from 'node:timers/promises'
import { type LeaseConnection, openLeaseConnections } from '@pool/test-kit/lease-connection.ts'
import { call } from '@pool/test-kit/linearizability/call.ts'
import { Controller } from '@pool/test-kit/linearizability/controller.ts'
import type { Asked, Operation } from '@pool/test-kit/linearizability/history.ts'
import { createPrng, type Prng } from '@pool/test-kit/prng.ts'

export interface Load {
  readonly port: number
  readonly operations: number
  readonly seed: number
  /** Then it ends, however few they are. */
  readonly withinMs: number
}

const CLIENTS = 16
const SLOTS = 20
/** Every client comes to the same slot for so many calls of all of them. */
const CONTENDED_FOR = 1_000
/** A client pauses after one call in so many. */
const CALLS_BETWEEN_PAUSES = 200
const LONGEST_TTL_MS = 2_000
/** A call may take about so long until it is decided. */
const UNDER_WAY_MS = 6

const slots = Array.from({ length: SLOTS }, (_, i) => `region-pair-${i}`)

/** Half of the pauses are longer than any lease; the others end so that a write is decided as its lease ends. */
const pauseMs = (random: Prng, leaseEnd: number | undefined): number =>
  leaseEnd === undefined || random.chance(0.5)
    ? LONGEST_TTL_MS * (1 + random.next() / 2)
    : Math.max(0, leaseEnd - Date.now() - random.below(UNDER_WAY_MS))

/** Sixteen controllers, each with a connection of its own, and all that they saw. */
export const record = async ({ port, operations, seed, withinMs }: Load): Promise<Operation[]> => {
  const history: Operation[] = []
  const deadline = performance.now() + withinMs
  const isOver = () => history.length >= operations || performance.now() > deadline

  const run = async (wire: LeaseConnection, controller: Controller, random: Prng) => {
    const make = async (slot: string, asked: Asked) => {
      const operation = await call(wire, slot, asked)
      history.push(operation)
      controller.learn(operation)
    }
    while (!isOver()) {
      const contended = slots[Math.floor(history.length / CONTENDED_FOR) % SLOTS]
      const slot = controller.choose(slots, contended)
      await make(slot, controller.ask(slot))
      if (!random.chance(1 / CALLS_BETWEEN_PAUSES)) continue
      const own = controller.own
      await sleep(pauseMs(random, controller.endOf(own[0] ?? '')))
      for (const old of own) await make(old, controller.askAsBefore(old))
    }
  }

  const wires = await openLeaseConnections(port, CLIENTS)
  try {
    const clients = wires.map((wire, i) => {
      const random = createPrng(seed * CLIENTS + i)
      return run(wire, new Controller(`region-${i}`, random), random)
    })
    await Promise.all(clients)
  } finally {
    for (const wire of wires) wire[Symbol.dispose]()
  }
  return history
}

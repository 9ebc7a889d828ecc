import { setTimeout as sleep } from 'node:timers/promises'
import { type LeaseConnection, openLeaseConnections } from '@pool/test-kit/lease-connection.ts'
import { checkLinearizability, describeViolation, type Rule } from '@pool/test-kit/linearizability/check.ts'
import { Controller, invoke } from '@pool/test-kit/linearizability/controller.ts'
import type { Invocation, Operation } from '@pool/test-kit/linearizability/history.ts'
import {
  doubleGrant,
  generationBack,
  lostRelease,
  staleRead,
  type Tamper,
} from '@pool/test-kit/linearizability/tamper.ts'
import type { SteppedClock } from '@pool/test-kit/linearizability/witness-clock.ts'
import { createPrng, type Prng } from '@pool/test-kit/prng.ts'
import { expect } from 'vitest'

export interface LoadOptions {
  /** The clients are divided among the replicas. */
  readonly ports: readonly number[]
  /** The load ends after as many. */
  readonly operations: number
  /** What must hold as well before the load ends. */
  readonly isComplete?: (history: readonly Operation[]) => boolean
  readonly seed: number
  /** Ends the load in any case. */
  readonly timeoutMs: number
  /** Absent: the witness runs on this machine's clock. */
  readonly clock?: SteppedClock
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

export const HISTORY_SLOTS = Array.from({ length: SLOTS }, (_, i) => `region-pair-${i}`)

/** Longer than every TTL. After a step of the clock, a lease seems to last for hours. */
const MAX_PAUSE_MS = 3_000

/** Half of the pauses outlast the lease. The others end so that the next write is decided when the lease expires. */
const pauseMs = (prng: Prng, remainingMs: number): number => {
  const shift = prng.chance(0.5) ? prng.below(MAX_EXTRA_PAUSE_MS) : -prng.below(REQUEST_MS)
  return Math.min(MAX_PAUSE_MS, Math.max(0, remainingMs + shift))
}

/** Runs sixteen controllers, each on its own connection, and records all their operations. */
export const recordHistory = async ({
  ports,
  operations,
  isComplete = () => true,
  seed,
  timeoutMs,
  clock,
}: LoadOptions): Promise<Operation[]> => {
  const history: Operation[] = []
  const now = () => clock?.now() ?? Date.now()
  const deadline = performance.now() + timeoutMs
  const isOver = () => (history.length >= operations && isComplete(history)) || performance.now() > deadline

  const run = async (connection: LeaseConnection, controller: Controller, prng: Prng) => {
    const perform = async (slot: string, invocation: Invocation) => {
      const operation = await invoke(connection, slot, invocation)
      history.push(operation)
      controller.observe(operation, now())
    }
    while (!isOver()) {
      const contended = HISTORY_SLOTS[Math.floor(history.length / OPERATIONS_PER_CONTENDED_SLOT) % SLOTS]
      const slot = controller.chooseSlot(HISTORY_SLOTS, contended)
      await perform(slot, controller.nextInvocation(slot))
      if (!prng.chance(1 / OPERATIONS_BETWEEN_PAUSES)) continue
      const own = controller.heldSlots
      await sleep(pauseMs(prng, (controller.getExpiry(own[0] ?? '') ?? now()) - now()))
      for (const slot of own) await perform(slot, controller.staleInvocation(slot))
    }
  }

  const connections = (
    await Promise.all(ports.map(port => openLeaseConnections(port, Math.ceil(CLIENTS / ports.length))))
  ).flat()
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

const MAX_SHOWN_VIOLATIONS = 5

/** What the check must reject, and on a clock that is not set by which rule. */
const tampers: readonly (readonly [rule: Rule, tamper: Tamper])[] = [
  ['real-time', staleRead],
  ['duplicate', doubleGrant],
  ['duplicate', generationBack],
  ['real-time', lostRelease],
]

/** Expects that the history is linearizable, and that the check would find one that is not. */
export const expectLinearizable = (history: readonly Operation[], seed: number, clock?: SteppedClock): void => {
  const violations = checkLinearizability(history, clock)
  expect(violations.slice(0, MAX_SHOWN_VIOLATIONS).map(describeViolation), `seed ${seed}`).toEqual([])
  for (const [rule, tamper] of tampers) {
    const rules = checkLinearizability(tamper(history), clock).map(violation => violation.rule)
    expect(rules, `${tamper.name}, seed ${seed}`).not.toEqual([])
    if (!clock) expect(rules, `${tamper.name}, seed ${seed}`).toContain(rule)
  }
  if (clock) expect(checkLinearizability(history), 'on a clock that is not set').not.toEqual([])
}

import { setTimeout as sleep } from 'node:timers/promises'
import type { Lease } from '@pool/contract/lease'
import { until } from '@pool/test-kit/poll.ts'
import { expect } from 'vitest'
import { type Client, createClient, parseLease, type WriteBody, writeLease } from './client.ts'

/** More writes than a test makes between two reads of a slot. An object that lost its storage skips more generations. */
const MAX_GENERATION_STEP = 100_000

/** Everything that the witness has acknowledged or shown to any client. Later responses must not contradict it. */
export class Ledger {
  readonly #highest = new Map<string, number>()
  readonly #states = new Map<string, string>()
  readonly violations: string[] = []

  /** The highest generation seen so far: a response to a later request must not be older. */
  highestGeneration(slot: string): number {
    return this.#highest.get(slot) ?? 0
  }

  /** Records a state from a response. `floor` is highestGeneration() when its request was sent. */
  record(slot: string, lease: Lease, floor: number): void {
    const { generation } = lease
    if (generation < floor) this.violations.push(`${slot} went back from ${floor} to ${generation}`)
    if (generation > floor + MAX_GENERATION_STEP) this.violations.push(`${slot} jumped from ${floor} to ${generation}`)
    const key = `${slot} ${generation}`
    const state = JSON.stringify(lease)
    const previous = this.#states.get(key)
    if (previous !== undefined && previous !== state) this.violations.push(`${slot} was ${previous} and ${state}`)
    this.#states.set(key, state)
    if (generation > this.highestGeneration(slot)) this.#highest.set(slot, generation)
  }

  /** The state of a generation, if a client has seen it. */
  find(slot: string, generation: number): Lease | undefined {
    const state = this.#states.get(`${slot} ${generation}`)
    return state === undefined ? undefined : JSON.parse(state)
  }
}

const released = (generation: number): Lease => ({ holder: '', acquiredAt: '', expiresAt: '', generation })

const NEVER_WRITTEN = released(0)
const RETRY_MS = 10
const READ_TIMEOUT_MS = 60_000

/** Reads a slot and records its state. Retries while the connection breaks or the witness responds 503. */
export const readLease = async (client: Client, ledger: Ledger, slot: string): Promise<Lease> => {
  const floor = ledger.highestGeneration(slot)
  for (const end = performance.now() + READ_TIMEOUT_MS; ; await sleep(RETRY_MS)) {
    const response = await client.send('GET', `/lease/${encodeURIComponent(slot)}`).catch(() => undefined)
    if (response?.status === 200 || response?.status === 404) {
      const lease = response.status === 200 ? parseLease(response) : NEVER_WRITTEN
      ledger.record(slot, lease, floor)
      return lease
    }
    if (response && response.status !== 503) throw new Error(`GET ${slot}: ${response.status} ${response.text}`)
    if (performance.now() > end) throw new Error(`GET ${slot}: no response within ${READ_TIMEOUT_MS} ms`)
  }
}

export interface WriteCounts {
  acknowledged: number
  rejected: number
  /** Writes without a response, classified by a later read. */
  applied: number
  notApplied: number
}

/** The fraction of the slots of other holders that a controller tries to acquire anyway. */
const HELD_SLOT_ATTEMPTS = 0.1

const isHeldByOther = (lease: Lease, holder: string): boolean =>
  lease.holder !== '' && lease.holder !== holder && Date.parse(lease.expiresAt) > Date.now()

const chooseWrite = (known: Lease, holder: string): WriteBody => {
  const ttlSeconds = 1 + Math.random() / 4
  if (known.holder !== holder) return { op: 'acquire', ttlSeconds }
  return Math.random() < 0.3 ? 'release' : { op: 'renew', ttlSeconds }
}

/** A controller that writes to random slots, each time with the generation that it saw last, until `stop` is aborted. */
export const runController = async (
  port: number,
  holder: string,
  slots: readonly string[],
  ledger: Ledger,
  counts: WriteCounts,
  stop: AbortSignal,
): Promise<void> => {
  using client = createClient(port)
  const known = new Map<string, Lease>()
  while (!stop.aborted) {
    const slot = slots[Math.floor(Math.random() * slots.length)] ?? ''
    const before = known.get(slot) ?? NEVER_WRITTEN
    if (isHeldByOther(before, holder) && Math.random() > HELD_SLOT_ATTEMPTS) {
      await sleep(1)
      continue
    }
    const body = chooseWrite(before, holder)
    const floor = ledger.highestGeneration(slot)
    const response = await writeLease(client, holder, slot, before.generation, body).catch(() => undefined)
    const next = before.generation + 1
    if (response === undefined || response.status === 503) {
      known.set(slot, await readLease(client, ledger, slot))
      // Only this controller's write can have made it the holder of the next generation, or have released its lease.
      const after = ledger.find(slot, next)
      if (after?.holder === (body === 'release' ? '' : holder)) counts.applied += 1
      else counts.notApplied += 1
    } else if (response.status === 200 || response.status === 204) {
      const lease = response.status === 200 ? parseLease(response) : released(next)
      if (lease.generation !== next || next <= floor) {
        ledger.violations.push(`${slot}: ${next} was granted after ${floor} had been seen`)
      }
      ledger.record(slot, lease, floor)
      known.set(slot, lease)
      counts.acknowledged += 1
    } else if (response.status === 412) {
      ledger.record(slot, parseLease(response), floor)
      known.set(slot, parseLease(response))
      counts.rejected += 1
    } else throw new Error(`${slot}: ${response.status} ${response.text}`)
  }
}

export interface KillOptions {
  /** The controllers are divided among the replicas. */
  readonly ports: readonly number[]
  readonly slots: readonly string[]
  readonly ledger: Ledger
  readonly counts: WriteCounts
  /** In this order. Each resolves when what it killed runs again. */
  readonly kills: readonly (() => Promise<void>)[]
}

const CONTROLLERS = 12
/** Before each kill. */
const WRITES_PER_KILL = 50
const MAX_RANDOM_DELAY_MS = 150

/** Kills while controllers write. After each kill, every replica must show at least what was acknowledged before it. */
export const killUnderLoad = async ({ ports, slots, ledger, counts, kills }: KillOptions): Promise<void> => {
  const stop = new AbortController()
  const controllers = Array.from({ length: CONTROLLERS }, (_, index) => {
    const port = ports[index % ports.length] ?? 0
    return runController(port, `controller-${index}`, slots, ledger, counts, stop.signal)
  })
  const load = Promise.all(controllers)
  // An error of a controller is reported when the load is awaited below.
  load.catch(() => {})
  for (const kill of kills) {
    const enough = counts.acknowledged + WRITES_PER_KILL
    await Promise.race([until('writes are acknowledged', () => counts.acknowledged >= enough), load])
    await sleep(Math.random() * MAX_RANDOM_DELAY_MS)
    const floors = slots.map(slot => ledger.highestGeneration(slot))
    await kill()
    for (const port of ports) {
      using client = createClient(port)
      for (const [index, slot] of slots.entries()) {
        const { generation } = await readLease(client, ledger, slot)
        expect(generation, slot).toBeGreaterThanOrEqual(floors[index] ?? 0)
      }
    }
  }
  stop.abort()
  await load
}

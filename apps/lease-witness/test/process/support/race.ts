import { setTimeout as sleep } from 'node:timers/promises'
import { isDeepStrictEqual } from 'node:util'
import type { Lease } from '@pool/contract/lease'
import {
  type LeaseConnection,
  type LeaseRequest,
  type LeaseResponse,
  openLeaseConnections,
} from '@pool/test-kit/lease-connection.ts'
import { proofSize, reportProof } from '@pool/test-kit/proof-size.ts'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'

export const MAX_WRITERS = 32

/** The state of a slot before the race. */
export const SLOT_STATES = ['fresh', 'held', 'expired'] as const
export type SlotState = (typeof SLOT_STATES)[number]

export interface Writer {
  readonly holder: string
  readonly op: 'acquire' | 'renew'
}

export interface Race {
  readonly slot: string
  /** Undefined: the slot was never written. */
  readonly before: Lease | undefined
  /** The holder of an unexpired lease, or empty. */
  readonly liveHolder: string
  /** One for each connection. */
  readonly writers: readonly Writer[]
}

export interface RaceResult {
  readonly grants: number
  readonly violations: readonly string[]
}

const HOLDER = 'holder'
/** Longer than the test. */
const LONG_TTL_SECONDS = 3_600
const SHORT_TTL_SECONDS = 1

const createRivals = (count: number): Writer[] =>
  Array.from({ length: count }, (_, i) => ({ holder: `rival-${i}`, op: 'acquire' }))

/**
 * The holder renews among rivals that try to acquire. In every other round it sends several renewals, like a client that
 * retries after a missing response: only one of them may be granted. The order rotates with the round.
 */
const createRenewals = (count: number, round: number): Writer[] => {
  const own = round % 2 === 0 ? Math.max(2, count / 2) : 1
  const holders = Array.from({ length: own }, (): Writer => ({ holder: HOLDER, op: 'renew' }))
  const writers = [...holders, ...createRivals(count - own)]
  const first = round % count
  return [...writers.slice(first), ...writers.slice(0, first)]
}

const toPut = (slot: string, { holder, op }: Writer, generation: number, ttlSeconds: number): LeaseRequest => ({
  method: 'PUT',
  path: `/lease/${slot}`,
  headers: { 'If-Match': `${generation}` },
  body: JSON.stringify({ holder, ttlSeconds, op }),
})

const parseLease = ({ text }: LeaseResponse): Lease => JSON.parse(text)

/** Acquires all slots, over all connections in parallel. */
const acquireAll = async (
  connections: readonly LeaseConnection[],
  slots: readonly string[],
  ttlSeconds: number,
): Promise<Lease[]> => {
  const leases: Lease[] = []
  const remaining = slots.entries()
  const acquire = async (connection: LeaseConnection) => {
    for (const [i, slot] of remaining) {
      leases[i] = parseLease(await connection.send(toPut(slot, { holder: HOLDER, op: 'acquire' }, 0, ttlSeconds)))
    }
  }
  await Promise.all(connections.map(acquire))
  return leases
}

/** Prepares one slot for each round. */
export const prepareRaces = async (
  connections: readonly LeaseConnection[],
  state: SlotState,
  writers: number,
  rounds: number,
): Promise<readonly Race[]> => {
  const slots = Array.from({ length: rounds }, (_, round) => `${state}-${writers}-${round}`)
  if (state === 'fresh') {
    return slots.map(slot => ({ slot, before: undefined, liveHolder: '', writers: createRivals(writers) }))
  }
  const isHeld = state === 'held'
  const leases = await acquireAll(connections, slots, isHeld ? LONG_TTL_SECONDS : SHORT_TTL_SECONDS)
  return slots.map((slot, round) => ({
    slot,
    before: leases[round],
    liveHolder: isHeld ? HOLDER : '',
    writers: isHeld ? createRenewals(writers, round) : createRivals(writers),
  }))
}

/** Waits until every lease that must be expired is expired. */
export const waitForExpiry = async (races: readonly Race[]): Promise<void> => {
  const ends = races.flatMap(({ before, liveHolder }) =>
    before && liveHolder === '' ? [Date.parse(before.expiresAt)] : [],
  )
  await sleep(Math.max(0, Math.max(0, ...ends) + 1 - Date.now()))
}

interface Attempt {
  readonly writer: Writer
  readonly response: LeaseResponse
}

const checkGrant = ({ before, liveHolder }: Race, { writer, response }: Attempt): string[] => {
  const { holder, acquiredAt, expiresAt, generation } = parseLease(response)
  const violations: string[] = []
  if (holder !== writer.holder) violations.push(`the grant to ${writer.holder} names the holder ${holder}`)
  if (liveHolder !== '' && holder !== liveHolder) violations.push(`${holder} was granted the lease of ${liveHolder}`)
  if (generation !== (before?.generation ?? 0) + 1) violations.push(`generation ${generation} was granted`)
  const heldForMs = Date.parse(expiresAt) - Date.parse(acquiredAt)
  const isRenewal = acquiredAt === before?.acquiredAt
  if (isRenewal !== (liveHolder !== '') || (!isRenewal && heldForMs !== LONG_TTL_SECONDS * 1_000)) {
    violations.push(`acquired at ${acquiredAt}`)
  }
  return violations
}

/** A rejection must show the granted lease. A rival of a live holder may also be rejected before the holder's renewal. */
const isConsistentRejection = (
  { before, liveHolder }: Race,
  { writer, response }: Attempt,
  granted: Lease,
): boolean => {
  if (response.status !== 412) return false
  const shown = parseLease(response)
  const isRival = liveHolder !== '' && writer.holder !== liveHolder
  return isDeepStrictEqual(shown, granted) || (isRival && isDeepStrictEqual(shown, before))
}

/**
 * All writers write to one slot with one generation. Nothing is awaited between the first and the last request, so all of
 * them are in the kernel's buffers before this process can read a response.
 */
export const runRace = async (connections: readonly LeaseConnection[], race: Race): Promise<RaceResult> => {
  const { slot, before, writers } = race
  const attempts = await Promise.all(
    writers.map(async (writer, i): Promise<Attempt> => {
      const response = await connections[i]?.send(toPut(slot, writer, before?.generation ?? 0, LONG_TTL_SECONDS))
      if (!response) throw new Error('more writers than connections')
      return { writer, response }
    }),
  )
  const after = await connections[0]?.send({ method: 'GET', path: `/lease/${slot}` })
  const grants = attempts.filter(({ response }) => response.status === 200)
  const [winner] = grants
  if (!winner) return { grants: 0, violations: [`${slot}: no write was granted`] }

  const granted = parseLease(winner.response)
  const violations = checkGrant(race, winner)
  const generations = new Set(grants.map(({ response }) => parseLease(response).generation))
  if (grants.length > 1) {
    violations.push(`granted ${grants.length} times, to ${grants.map(({ writer }) => writer.holder).join(', ')}`)
  }
  if (generations.size < grants.length) violations.push('a generation was granted twice')
  for (const attempt of attempts) {
    const { writer, response } = attempt
    if (response.status === 200 || isConsistentRejection(race, attempt, granted)) continue
    violations.push(`${writer.holder} received ${response.status} ${response.text} instead of ${winner.response.text}`)
  }
  if (after?.status !== 200 || after.text !== winner.response.text) {
    violations.push(`a later read returned ${after?.status} ${after?.text} instead of ${winner.response.text}`)
  }
  return { grants: grants.length, violations: violations.map(violation => `${slot}: ${violation}`) }
}

/** Every round uses `writers` connections, so several rounds run in parallel. */
export const runRaces = async (
  connections: readonly LeaseConnection[],
  races: readonly Race[],
  writers: number,
): Promise<RaceResult[]> => {
  const results: RaceResult[] = []
  const remaining = races.values()
  const runLane = async (own: readonly LeaseConnection[]) => {
    for (const race of remaining) results.push(await runRace(own, race))
  }
  const lanes = Array.from({ length: connections.length / writers }, (_, i) =>
    connections.slice(i * writers, (i + 1) * writers),
  )
  await Promise.all(lanes.map(runLane))
  return results
}

/** Opens a connection for each writer, in turn to each of the replicas. */
export const connect = async (ports: readonly number[]) => {
  const count = Math.ceil(MAX_WRITERS / ports.length)
  const groups = await Promise.all(ports.map(port => openLeaseConnections(port, count)))
  const connections = Array.from({ length: count }, (_, i) => groups.flatMap(group => group[i] ?? [])).flat()
  const close = () => {
    for (const connection of connections) connection[Symbol.dispose]()
  }
  return { connections, [Symbol.dispose]: close }
}

/** A decision that awaits anything between its read and its write fails in more than a third of the rounds. */
const ROUNDS = proofSize(500, 20)

/** Tests that of writers that write at once, one is granted the lease and the others see it. */
export const describeRaces = (
  title: string,
  start: () => Promise<AsyncDisposable & { readonly ports: readonly number[] }>,
): void => {
  describe(title, () => {
    const cases = SLOT_STATES.flatMap(state => [2, 8, MAX_WRITERS].map(writers => ({ state, writers })))
    let witness: Awaited<ReturnType<typeof start>>
    /** Prepared for all cases first, so that the short leases expire during the other cases. */
    const prepared = new Map<(typeof cases)[number], readonly Race[]>()

    beforeAll(async () => {
      witness = await start()
      using client = await connect(witness.ports)
      for (const row of cases) {
        prepared.set(row, await prepareRaces(client.connections, row.state, row.writers, ROUNDS))
      }
    })
    afterAll(async () => {
      await witness?.[Symbol.asyncDispose]()
      reportProof(`${title}: ${ROUNDS} races for each of ${cases.length} combinations of slot state and writers`)
    })

    test.each(cases)(
      `$writers writers on a slot that is $state: exactly one is granted the lease, the others see it, ${ROUNDS} times`,
      async row => {
        const races = prepared.get(row) ?? []
        await waitForExpiry(races)
        using client = await connect(witness.ports)
        const results = await runRaces(client.connections, races, row.writers)
        expect(results.flatMap(({ violations }) => violations)).toEqual([])
        expect(results.map(({ grants }) => grants)).toEqual(Array(ROUNDS).fill(1))
      },
    )
  })
}

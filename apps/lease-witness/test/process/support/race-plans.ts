import { setTimeout as sleep } from 'node:timers/promises'
import type { Lease } from '@pool/contract/lease'
import type { LeaseConnection } from '@pool/test-kit/lease-connection.ts'
import { leaseIn, put, type Race, type Writer } from './race.ts'

export const states = ['fresh', 'held', 'expired'] as const
export type State = (typeof states)[number]

const HOLDER = 'holder'
const LONG_TTL_SECONDS = 300
const SHORT_TTL_SECONDS = 1

const rivals = (count: number): Writer[] =>
  Array.from({ length: count }, (_, i) => ({ holder: `rival-${i}`, op: 'acquire' }))

/**
 * The holder renews, in every other round from several connections, as one does that got no answer and sent it again: only
 * one of those may be granted. All others try to take it, before, between and after them.
 */
const renewals = (count: number, round: number): Writer[] => {
  const own = round % 2 === 0 ? Math.max(2, count / 2) : 1
  const holders = Array.from({ length: own }, (): Writer => ({ holder: HOLDER, op: 'renew' }))
  const writers = [...holders, ...rivals(count - own)]
  const turn = round % count
  return [...writers.slice(turn), ...writers.slice(0, turn)]
}

/** A lease on each slot, by as many connections at a time as there are. */
const acquireAll = async (
  wires: readonly LeaseConnection[],
  slots: readonly string[],
  ttlSeconds: number,
): Promise<Lease[]> => {
  const leases: Lease[] = []
  const rest = slots.entries()
  const acquire = async (wire: LeaseConnection) => {
    for (const [i, slot] of rest) {
      leases[i] = leaseIn(await wire.send(put(slot, { holder: HOLDER, op: 'acquire' }, 0, ttlSeconds)))
    }
  }
  await Promise.all(wires.map(acquire))
  return leases
}

/** So many rounds, each with a slot of its own, so that an expiry is waited for once and not in every round. */
export const plan = async (
  wires: readonly LeaseConnection[],
  state: State,
  writers: number,
  rounds: number,
): Promise<readonly Race[]> => {
  const slots = Array.from({ length: rounds }, (_, round) => `${state}-${writers}-${round}`)
  if (state === 'fresh') return slots.map(slot => ({ slot, before: undefined, live: '', writers: rivals(writers) }))
  const isHeld = state === 'held'
  const leases = await acquireAll(wires, slots, isHeld ? LONG_TTL_SECONDS : SHORT_TTL_SECONDS)
  if (!isHeld) await sleep(Math.max(...leases.map(({ expiresAt }) => Date.parse(expiresAt))) + 1 - Date.now())
  return slots.map((slot, round) => ({
    slot,
    before: leases[round],
    live: isHeld ? HOLDER : '',
    writers: isHeld ? renewals(writers, round) : rivals(writers),
  }))
}

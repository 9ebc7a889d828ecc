import { setTimeout as sleep } from 'node:timers/promises'
import type { Lease } from '@pool/contract/lease'
import { type Answer, type Client, createClient, leaseOf } from './client.ts'
import { type Ledger, NEVER_WRITTEN, released } from './ledger.ts'

export interface Tally {
  acknowledged: number
  refused: number
  /** Writes without an answer, as a later look at the slot told. */
  applied: number
  notApplied: number
}

export const writeOf = (
  client: Client,
  holder: string,
  slot: string,
  generation: number,
  write: { readonly op: 'acquire' | 'renew'; readonly ttlSeconds: number } | 'release',
): Promise<Answer> => {
  const headers = { 'If-Match': String(generation), 'X-Holder': holder }
  const path = `/lease/${encodeURIComponent(slot)}`
  return write === 'release'
    ? client.send('DELETE', path, headers)
    : client.send('PUT', path, headers, JSON.stringify(write))
}

const RETRY_MS = 10
const GIVE_UP_MS = 20_000

/** A look at a slot that does not take a broken connection for an answer. */
export const look = async (client: Client, ledger: Ledger, slot: string): Promise<Lease> => {
  const floor = ledger.floorOf(slot)
  for (const end = performance.now() + GIVE_UP_MS; ; await sleep(RETRY_MS)) {
    const answer = await client.send('GET', `/lease/${encodeURIComponent(slot)}`).catch(() => undefined)
    if (answer?.status === 200 || answer?.status === 404) {
      const lease = answer.status === 200 ? leaseOf(answer) : NEVER_WRITTEN
      ledger.told(slot, lease, floor)
      return lease
    }
    if (answer && answer.status !== 503) throw new Error(`GET of ${slot}: ${answer.status} ${answer.text}`)
    if (performance.now() > end) throw new Error(`no answer about ${slot} within ${GIVE_UP_MS} ms`)
  }
}

/** Of the slots that another one holds, so many are tried all the same: a controller may think what it likes. */
const TRIES_OF_HELD = 0.1

const isHeldByOther = ({ holder: by, expiresAt }: Lease, holder: string): boolean =>
  by !== '' && by !== holder && Date.parse(expiresAt) > Date.now()

const writeFor = (known: Lease, holder: string): Parameters<typeof writeOf>[4] => {
  if (known.holder !== holder) return { op: 'acquire', ttlSeconds: 1 + Math.random() }
  return Math.random() < 0.3 ? 'release' : { op: 'renew', ttlSeconds: 1 + Math.random() }
}

/** One controller: it writes to slots by chance with the generation that it saw last, until it is told to stop. */
export const runController = async (
  port: number,
  holder: string,
  slots: readonly string[],
  ledger: Ledger,
  tally: Tally,
  stop: AbortSignal,
): Promise<void> => {
  using client = createClient(port)
  const known = new Map<string, Lease>()
  while (!stop.aborted) {
    const slot = slots[Math.floor(Math.random() * slots.length)] ?? ''
    const before = known.get(slot) ?? NEVER_WRITTEN
    if (isHeldByOther(before, holder) && Math.random() > TRIES_OF_HELD) {
      await sleep(1)
      continue
    }
    const write = writeFor(before, holder)
    const floor = ledger.floorOf(slot)
    const answer = await writeOf(client, holder, slot, before.generation, write).catch(() => undefined)
    const next = before.generation + 1
    if (answer === undefined || answer.status === 503) {
      const now = await look(client, ledger, slot)
      known.set(slot, now)
      // Only who wrote can be the holder of the next generation, and only the holder can have released.
      const after = ledger.at(slot, next)
      if (after?.holder === (write === 'release' ? '' : holder)) tally.applied += 1
      else tally.notApplied += 1
    } else if (answer.status === 200 || answer.status === 204) {
      const lease = answer.status === 200 ? leaseOf(answer) : released(next)
      if (lease.generation !== next || next <= floor) {
        ledger.faults.push(`${slot}: ${next} was granted when ${floor} had been told`)
      }
      ledger.told(slot, lease, floor)
      known.set(slot, lease)
      tally.acknowledged += 1
    } else if (answer.status === 412) {
      ledger.told(slot, leaseOf(answer), floor)
      known.set(slot, leaseOf(answer))
      tally.refused += 1
    } else throw new Error(`${slot}: ${answer.status} ${answer.text}`)
  }
}

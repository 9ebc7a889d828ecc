import { isDeepStrictEqual } from 'node:util'
import type { Lease } from '@pool/contract/lease'
import type { LeaseConnection, LeaseRequest, LeaseResponse } from '@pool/test-kit/lease-connection.ts'

export interface Writer {
  readonly holder: string
  readonly op: 'acquire' | 'renew'
}

export interface Race {
  readonly slot: string
  /** What the slot holds; undefined: it was never written. */
  readonly before: Lease | undefined
  /** Who holds it unexpired; empty: nobody. */
  readonly live: string
  /** One for each connection. */
  readonly writers: readonly Writer[]
}

export interface Outcome {
  readonly grants: number
  /** What is wrong with the round; empty: nothing. */
  readonly faults: readonly string[]
}

interface Ran {
  readonly writer: Writer
  readonly answer: LeaseResponse
}

/** Outlives the test. */
const TTL_SECONDS = 300

export const put = (slot: string, { holder, op }: Writer, generation: number, ttlSeconds: number): LeaseRequest => ({
  method: 'PUT',
  path: `/lease/${slot}`,
  headers: { 'If-Match': `${generation}` },
  body: JSON.stringify({ holder, ttlSeconds, op }),
})

export const leaseIn = ({ text }: LeaseResponse): Lease => JSON.parse(text)

const grantFaults = ({ before, live }: Race, { writer, answer }: Ran): string[] => {
  const { holder, acquiredAt, expiresAt, generation } = leaseIn(answer)
  const faults: string[] = []
  if (holder !== writer.holder) faults.push(`${writer.holder} was told that ${holder} holds it`)
  if (live !== '' && holder !== live) faults.push(`${holder} was granted what ${live} held`)
  if (generation !== (before?.generation ?? 0) + 1) faults.push(`generation ${generation} was granted`)
  const heldFor = Date.parse(expiresAt) - Date.parse(acquiredAt)
  const isKept = acquiredAt === before?.acquiredAt
  if (isKept !== (live !== '') || (!isKept && heldFor !== TTL_SECONDS * 1_000)) faults.push(`acquired at ${acquiredAt}`)
  return faults
}

/** Whom a live holder keeps out may have been refused before the holder wrote, and all others only by what was granted. */
const isTold = ({ before, live }: Race, { writer, answer }: Ran, granted: Lease): boolean => {
  if (answer.status !== 412) return false
  const shown = leaseIn(answer)
  const isKeptOut = live !== '' && writer.holder !== live
  return isDeepStrictEqual(shown, granted) || (isKeptOut && isDeepStrictEqual(shown, before))
}

const read = async (wire: LeaseConnection | undefined, slot: string): Promise<LeaseResponse | undefined> =>
  wire?.send({ method: 'GET', path: `/lease/${slot}` })

/**
 * All writers ask for one slot with one generation. Every request is in the kernel's hands before this process can read
 * the first answer, for nothing is awaited between the first and the last.
 */
export const run = async (wires: readonly LeaseConnection[], race: Race): Promise<Outcome> => {
  const { slot, before, writers } = race
  const ran = await Promise.all(
    writers.map(async (writer, i): Promise<Ran> => {
      const answer = await wires[i]?.send(put(slot, writer, before?.generation ?? 0, TTL_SECONDS))
      if (!answer) throw new Error('a writer has no connection')
      return { writer, answer }
    }),
  )
  const after = await read(wires[0], slot)
  const won = ran.filter(({ answer }) => answer.status === 200)
  const [winner] = won
  if (!winner) return { grants: 0, faults: [`${slot}: nobody was granted it`] }

  const granted = leaseIn(winner.answer)
  const faults = grantFaults(race, winner)
  const generations = new Set(won.map(({ answer }) => leaseIn(answer).generation))
  if (won.length > 1) faults.push(`granted ${won.length} times, to ${won.map(one => one.writer.holder).join(', ')}`)
  if (generations.size < won.length) faults.push('a generation was granted twice')
  for (const one of ran) {
    if (one.answer.status === 200 || isTold(race, one, granted)) continue
    faults.push(`${one.writer.holder} was told ${one.answer.status} ${one.answer.text}, not ${winner.answer.text}`)
  }
  if (after?.status !== 200 || after.text !== winner.answer.text) {
    faults.push(`afterwards it reads ${after?.status} ${after?.text}, not ${winner.answer.text}`)
  }
  return { grants: won.length, faults: faults.map(fault => `${slot}: ${fault}`) }
}

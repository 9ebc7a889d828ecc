import type { ServiceDocument } from '../oracle/document.ts'
import type { Answer } from '../wire/answer.ts'
import { authorization, entityTags, preference } from './headers.ts'
import { type Base, bent, grammarOf } from './mutate.ts'
import { encoded } from './queries.ts'
import type { Random } from './random.ts'
import { described, type Lane, operationNamed } from './step.ts'

export interface WitnessLaneOptions {
  readonly document: ServiceDocument
  readonly random: Random
  /** Its own slots have it in them. */
  readonly number: number
  readonly token: string
}

const weights: Readonly<Record<string, number>> = {
  readLease: 30,
  writeLease: 36,
  releaseLease: 14,
  leaseMethods: 2,
  readLeaseHistory: 8,
  historyMethods: 1,
  listLeases: 6,
  leasesMethods: 1,
}

const SLOTS = 6

/** The same slot, spelled as different clients spell it. */
const spelled = (slot: string, random: Random): string =>
  random.pick([
    encodeURIComponent(slot),
    slot.split('/').map(encodeURIComponent).join('/'),
    encodeURIComponent(slot).replace(/%[0-9A-F]{2}/g, hex => hex.toLowerCase()),
  ])

/** A client of the lease witness: acquires, renews, releases slots of its own, and some that all want. */
export const createWitnessLane = ({ document, random, number, token }: WitnessLaneOptions): Lane => {
  const wheel = document.operations.flatMap(({ id }) => Array<string>(weights[id] ?? 1).fill(id))
  const generations = new Map<string, number>()
  let cursor = 'x'

  const slotOf = () =>
    random.chance(0.1)
      ? `shared/${random.below(4)}`
      : random.chance(0.05)
        ? `é 💥/${number}`
        : `lane ${number}/${random.below(SLOTS)}`
  const holderOf = (slot: string) =>
    slot.startsWith('shared') ? `region-${number}` : `region-${random.below(3) === 0 ? 'b' : 'a'}/${number}`

  const headersOf = (id: string, generation: number, holder: string): string[] => {
    const isOdd = random.chance(0.12)
    const tag = isOdd
      ? entityTags(generation, random)
      : random.pick([`${generation}`, `"${generation}"`, `W/"${generation}"`])
    switch (id) {
      case 'writeLease':
        return [
          generation === 0 && random.chance(0.2) ? 'If-None-Match: *' : `If-Match: ${tag}`,
          ...(random.chance(0.15) ? [`X-Holder: ${holder}`] : []),
        ]
      case 'releaseLease':
        return [`If-Match: ${tag}`, `X-Holder: ${holder}`]
      case 'readLease':
        return random.chance(0.5)
          ? [
              `If-None-Match: ${isOdd ? tag : entityTags(generation, random)}`,
              ...(random.chance(0.15) ? [`Prefer: ${preference(random)}`] : []),
            ]
          : []
      default:
        return []
    }
  }

  const goodOf = (id: string, base: Base, slot: string): Base => {
    const holder = holderOf(slot)
    // Mostly the generation that is; now and then one that was, or will be.
    const generation = Math.max(
      0,
      (generations.get(slot) ?? 0) + (random.chance(0.12) ? random.pick([-1, 1, -2, 5]) : 0),
    )
    const body = {
      holder,
      ttlSeconds: random.pick([1, 30, 1.5, 86_400]),
      op: random.chance(0.3) && generation > 0 ? 'renew' : 'acquire',
    }
    const path = operationNamed(document, id).path.replace('{slot}', spelled(slot, random))
    return { ...base, path, headers: headersOf(id, generation, holder), ...(base.body === undefined ? {} : { body }) }
  }

  return {
    next() {
      const id = random.pick(wheel)
      const slot = slotOf()
      const known = { slot, limit: `${1 + random.below(20)}`, prefix: random.pick(['', 'lane', encoded(slot)]), cursor }
      const documented = described(document, operationNamed(document, id), known, random)
      const base = random.chance(0.8) ? goodOf(id, documented, slot) : documented
      // A documented wait is half a minute long; and the whole list is a thousand leases.
      const calm = (base.headers ?? []).filter(line => !/^prefer:.*\d\d/i.test(line))
      const query =
        id === 'listLeases'
          ? [
              ['limit', known.limit] as const,
              ...(base.query ?? []).filter(([name]) => name !== 'limit' || random.chance(0.1)),
            ]
          : base.query
      const grammar = grammarOf(random)
      const isOdd = grammar === 'headers' && random.chance(0.4)
      const auth = `Authorization: ${isOdd ? authorization(token, random) : `Bearer ${token}`}`
      const request = bent({ ...base, headers: [auth, ...calm], ...(query ? { query } : {}) }, grammar, random)
      const isOfSlot = base.path.startsWith('/lease/') && base !== documented && grammar !== 'paths'
      return { request, learn: answer => learn(answer, isOfSlot ? slot : undefined) }
    },
  }

  function learn(answer: Answer, slot: string | undefined) {
    try {
      const body = Object(JSON.parse(answer.body.toString('utf8') || '{}'))
      if (typeof body.nextCursor === 'string') cursor = body.nextCursor
      if (slot === undefined) return
      if (typeof body.generation === 'number') generations.set(slot, body.generation)
      // The answer to a release has no body, and one generation more.
      else if (answer.status === 204 && !answer.headers.has('allow'))
        generations.set(slot, (generations.get(slot) ?? 0) + 1)
    } catch {
      // What is no JSON teaches nothing; it has been judged.
    }
  }
}

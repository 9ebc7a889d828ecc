import type { HttpResponse } from '@pool/test-kit/http1.ts'
import type { ServiceDocument } from '../oracle/document.ts'
import type { Choices } from './choices.ts'
import { authorization, entityTags, preference } from './headers.ts'
import { mutate, pickMutation, type SeedRequest } from './mutate.ts'
import { encodeText } from './queries.ts'
import { createDocumentedRequest, type FuzzWorkload, findOperation, type Step } from './workload.ts'

export interface WitnessWorkloadOptions {
  readonly document: ServiceDocument
  /** Part of the slots that only this client uses. */
  readonly number: number
  readonly token: string
}

const weights: Readonly<Record<string, number>> = {
  readLease: 30,
  writeLease: 36,
  releaseLease: 14,
  getLeaseMethods: 2,
  readLeaseHistory: 8,
  getLeaseHistoryMethods: 1,
  listLeases: 8,
  getLeaseListMethods: 1,
  renewLeases: 8,
  getRenewalMethods: 1,
  getHealth: 2,
  getHealthMethods: 1,
}

const SLOTS = 6

/** The same slot in the spellings of different clients. */
const spellSlot = (slot: string, choices: Choices): string =>
  choices.pick([
    encodeURIComponent(slot),
    slot.split('/').map(encodeURIComponent).join('/'),
    encodeURIComponent(slot).replace(/%[0-9A-F]{2}/g, hex => hex.toLowerCase()),
  ])

type Query = NonNullable<SeedRequest['query']>

/** A page of the copies, or the exact state of some slots. */
const createListQuery = (documented: Query, limit: string, slots: readonly string[], choices: Choices): Query => {
  const isExact = choices.chance(0.4)
  const rest = documented.filter(([name]) => (name === 'slot') === isExact)
  return isExact
    ? [...slots.map(slot => ['slot', slot] as const), ...rest.filter(() => choices.chance(0.2))]
    : [['limit', limit], ...rest.filter(([name]) => name !== 'limit' || choices.chance(0.1))]
}

/** The generations and the cursor of the last responses. */
interface WitnessState {
  readonly generations: Map<string, number>
  cursor: string
}

/** A client of the lease witness. It acquires, renews and releases its own slots, and some shared ones. */
export const createWitnessWorkload = (
  options: WitnessWorkloadOptions,
  state: WitnessState = { generations: new Map(), cursor: 'x' },
): FuzzWorkload => {
  const { document, number, token } = options
  const weighted = document.operations.flatMap(({ id }) => Array<string>(weights[id] ?? 1).fill(id))

  const pickSlot = (choices: Choices) => {
    if (choices.chance(0.1)) return `shared/${choices.below(4)}`
    // A slot of another client, for which most tokens with a policy have no rights.
    if (choices.chance(0.05)) return `client ${number + 1}/${choices.below(SLOTS)}`
    return choices.chance(0.05) ? `é 💥/${number}` : `client ${number}/${choices.below(SLOTS)}`
  }
  const pickHolder = (slot: string, choices: Choices) =>
    slot.startsWith('shared') ? `region-${number}` : `region-${choices.below(3) === 2 ? 'b' : 'a'}/${number}`

  const pickSlots = (first: string, choices: Choices): string[] => [
    ...new Set([first, ...choices.times(choices.below(4), () => pickSlot(choices))]),
  ]
  const createRenewals = (first: string, holder: string, choices: Choices) => ({
    holder,
    leases: pickSlots(first, choices).map(slot => ({
      slot,
      generation: state.generations.get(slot) ?? 0,
      ...(choices.chance(0.5) ? { ttlSeconds: choices.pick([1, 30, 86_400]) } : {}),
    })),
  })

  const createHeaders = (id: string, generation: number, holder: string, choices: Choices): string[] => {
    const isUnusual = choices.chance(0.12)
    const tag = isUnusual
      ? entityTags(generation, choices)
      : choices.pick([`${generation}`, `"${generation}"`, `W/"${generation}"`])
    switch (id) {
      case 'writeLease':
        return [
          generation === 0 && choices.chance(0.2) ? 'If-None-Match: *' : `If-Match: ${tag}`,
          ...(choices.chance(0.15) ? [`X-Holder: ${holder}`] : []),
        ]
      case 'releaseLease':
        return [`If-Match: ${tag}`, `X-Holder: ${holder}`]
      case 'readLease':
        return choices.chance(0.5)
          ? [
              `If-None-Match: ${isUnusual ? tag : entityTags(generation, choices)}`,
              ...(choices.chance(0.15) ? [`Prefer: ${preference(choices)}`] : []),
            ]
          : []
      default:
        return []
    }
  }

  const createValid = (id: string, seed: SeedRequest, slot: string, choices: Choices): SeedRequest => {
    const holder = pickHolder(slot, choices)
    // Usually the current generation, sometimes an earlier or a later one.
    const offset = choices.chance(0.12) ? choices.pick([-1, 1, -2, 5]) : 0
    const generation = Math.max(0, (state.generations.get(slot) ?? 0) + offset)
    const ttlSeconds = choices.pick([1, 30, 1.5, 86_400])
    const op = choices.chance(0.3) && generation > 0 ? 'renew' : 'acquire'
    const body = id === 'renewLeases' ? createRenewals(slot, holder, choices) : { holder, ttlSeconds, op }
    const path = findOperation(document, id).path.replace('{slot}', spellSlot(slot, choices))
    const headers = createHeaders(id, generation, holder, choices)
    return { ...seed, path, headers, ...(seed.body === undefined ? {} : { body }) }
  }

  const learn = (response: HttpResponse, slot: string | undefined) => {
    try {
      const body = Object(JSON.parse(response.text || '{}'))
      if (typeof body.nextCursor === 'string') state.cursor = body.nextCursor
      for (const { slot: renewed, lease } of Array.isArray(body.results) ? body.results : [])
        if (typeof lease?.generation === 'number') state.generations.set(renewed, lease.generation)
      if (slot === undefined) return
      if (typeof body.generation === 'number') state.generations.set(slot, body.generation)
      // The response to a release has no body; the release increments the generation.
      else if (response.status === 204 && !response.headers.has('allow'))
        state.generations.set(slot, (state.generations.get(slot) ?? 0) + 1)
    } catch {
      // The oracle has reported invalid JSON.
    }
  }

  return {
    next(choices): Step {
      const id = choices.pick(weighted)
      const slot = pickSlot(choices)
      const known = {
        slot,
        limit: `${1 + choices.below(20)}`,
        prefix: choices.pick(['', 'client', encodeText(slot)]),
        cursor: state.cursor,
      }
      const documented = createDocumentedRequest(document, findOperation(document, id), known, choices)
      const isValid = choices.chance(0.8)
      const seed = isValid ? createValid(id, documented, slot, choices) : documented
      // The documented wait takes half a minute, and the whole list has a thousand leases.
      const quick = (seed.headers ?? []).filter(line => !/^prefer:.*\d\d/i.test(line))
      const query =
        id === 'listLeases'
          ? createListQuery(seed.query ?? [], known.limit, pickSlots(slot, choices), choices)
          : seed.query
      const mutation = pickMutation(choices)
      const isUnusual = mutation === 'headers' && choices.chance(0.4)
      const authorizationLine = `Authorization: ${isUnusual ? authorization(token, choices) : `Bearer ${token}`}`
      const headers = [authorizationLine, ...quick]
      const mutated = mutate({ ...seed, headers, ...(query ? { query } : {}) }, mutation, choices)
      const request = { ...mutated, tenant: number }
      const hasSlot = seed.path.startsWith('/lease/') && isValid && mutation !== 'paths'
      return { request, learn: response => learn(response, hasSlot ? slot : undefined) }
    },
    clone: () => createWitnessWorkload(options, { ...state, generations: new Map(state.generations) }),
  }
}

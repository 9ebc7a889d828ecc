import { setTimeout as sleep } from 'node:timers/promises'
import type { Prng } from '@pool/test-kit/prng.ts'
import type { Api, ApiResponse } from '@pool/test-kit/services.ts'
import { commit, pool, release, reserve } from '../operations.ts'

/** The state of a name according to its last response. */
export type ConfirmedState =
  | { readonly state: 'free' }
  | { readonly state: 'reserved'; readonly token: string }
  | { readonly state: 'active'; readonly token: string; readonly address: string }

export interface CallerOptions {
  /** Unique per caller, below 100. Its names and addresses contain it. */
  readonly number: number
  readonly prng: Prng
  /** Picks a replica that has not been killed yet. */
  readonly pickApi: () => Api
  readonly isOver: () => boolean
}

export interface Caller {
  /** By name, for every name whose last request got a response. */
  readonly confirmed: ReadonlyMap<string, ConfirmedState>
  /** The operation by name, for names whose last request got no response. The caller no longer uses these names. */
  readonly unanswered: ReadonlyMap<string, string>
  readonly requests: number
  readonly unexpectedResponses: readonly string[]
  readonly ended: Promise<void>
}

const NAMES = 3
const MAX_PAUSE_MS = 80
/** A provider may hold only a few hundred records. */
const MAX_UNANSWERED = 2

/** Reserves, commits and releases its own names, one request at a time, until `isOver`. */
export const startCaller = ({ number, prng, pickApi, isOver }: CallerOptions): Caller => {
  const confirmed = new Map<string, ConfirmedState>()
  const unanswered = new Map<string, string>()
  const unexpectedResponses: string[] = []
  let requests = 0
  let nameCount = 0
  let addressCount = 0

  const send = async (operation: string, call: (api: Api) => Promise<ApiResponse>, expected: readonly number[]) => {
    requests += 1
    const response = await call(pickApi()).catch(() => undefined)
    if (response && !expected.includes(response.status))
      unexpectedResponses.push(`${operation}: ${response.status} ${response.text}`)
    return response
  }

  /** Releases a name in an unknown state. Repeats the request until it gets a response other than a 5xx. */
  const releaseUnknown = async (name: string): Promise<void> => {
    for (;;) {
      const response = await send(`release ${name}`, api => release(api, name), [200, 202, 404])
      if (response && response.status < 500) break
    }
    confirmed.set(name, { state: 'free' })
  }

  const handleMissingResponse = async (name: string, operation: string): Promise<void> => {
    confirmed.delete(name)
    if (unanswered.size < MAX_UNANSWERED && prng.chance(0.5)) unanswered.set(name, operation)
    else await releaseUnknown(name)
  }

  const sendNext = async (name: string, current: ConfirmedState): Promise<void> => {
    if (current.state === 'free') {
      const response = await send(`reserve ${name}`, api => reserve(api, name), [201, 409])
      if (!response) return handleMissingResponse(name, 'reserve')
      // An earlier reserve without a response took effect after the name had been released.
      if (response.status === 409) return releaseUnknown(name)
      confirmed.set(name, { state: 'reserved', token: response.body.reservationToken })
      return
    }
    const { token } = current
    if (current.state === 'reserved' && prng.chance(0.9)) {
      addressCount += 1
      const address = `10.${number}.${addressCount >> 8}.${addressCount & 255}`
      const response = await send(`commit ${name}`, api => commit(api, name, token, address), [200, 202])
      if (!response) return handleMissingResponse(name, 'commit')
      confirmed.set(name, { state: 'active', token, address })
      return
    }
    const body = { subdomain: name, reservationToken: token }
    const path = `/api/v1/pool/${pool}/release`
    const response = await send(`release ${name}`, api => api.call('DELETE', path, body), [200, 202])
    if (!response) return handleMissingResponse(name, 'release')
    confirmed.set(name, { state: 'free' })
  }

  const run = async (): Promise<void> => {
    while (!isOver()) {
      while (confirmed.size < NAMES) {
        confirmed.set(`n${number}-${nameCount}`, { state: 'free' })
        nameCount += 1
      }
      const [name, current] = prng.pick([...confirmed])
      await sendNext(name, current)
      // Leaves CPU time for the replicas that are restarting.
      await sleep(prng.below(MAX_PAUSE_MS))
    }
  }
  const ended = run()
  return {
    confirmed,
    unanswered,
    get requests() {
      return requests
    },
    unexpectedResponses,
    ended,
  }
}

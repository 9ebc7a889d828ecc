import { setTimeout as sleep } from 'node:timers/promises'
import type { Prng } from '@pool/test-kit/prng.ts'
import type { Api, ApiResponse } from '../api.ts'
import { commit, pool, release, reserve } from '../operations.ts'

/** What a caller has been told of a name. */
export type Told =
  | { readonly state: 'free' }
  | { readonly state: 'reserved'; readonly token: string }
  | { readonly state: 'active'; readonly token: string; readonly address: string }

export interface CallerOptions {
  /** In the names and addresses of this caller and no other; below 100. */
  readonly number: number
  readonly dice: Prng
  /** One that is not known to be dead. */
  readonly anApi: () => Api
  readonly isOver: () => boolean
}

export interface Caller {
  /** Of every name whose last request was answered. */
  readonly told: ReadonlyMap<string, Told>
  /** Of the names whose last request was not answered, which nobody has touched since: what was asked. */
  readonly unanswered: ReadonlyMap<string, string>
  readonly requests: number
  readonly oddities: readonly string[]
  readonly ended: Promise<void>
}

const NAMES = 3
const MOST_REST_MS = 80
/** A provider may have room for a few hundred records only. */
const MOST_LEFT = 2

/** Takes, uses and frees names of its own, one request at a time, until it is over. */
export const startCaller = ({ number, dice, anApi, isOver }: CallerOptions): Caller => {
  const told = new Map<string, Told>()
  const unanswered = new Map<string, string>()
  const oddities: string[] = []
  let requests = 0
  let made = 0
  let addresses = 0

  const ask = async (what: string, call: (api: Api) => Promise<ApiResponse>, expected: readonly number[]) => {
    requests += 1
    const answer = await call(anApi()).catch(() => undefined)
    if (answer && !expected.includes(answer.status)) oddities.push(`${what}: ${answer.status} ${answer.text}`)
    return answer
  }

  /** Of a name of which it is not known how it stands: frees it, whoever answers. */
  const makeFree = async (name: string): Promise<void> => {
    for (;;) {
      const answer = await ask(`release ${name}`, api => release(api, name), [200, 202, 404])
      if (answer && answer.status < 500) break
    }
    told.set(name, { state: 'free' })
  }

  const lose = async (name: string, what: string): Promise<void> => {
    told.delete(name)
    if (unanswered.size < MOST_LEFT && dice.chance(0.5)) unanswered.set(name, what)
    else await makeFree(name)
  }

  const next = async (name: string, now: Told): Promise<void> => {
    if (now.state === 'free') {
      const answer = await ask(`reserve ${name}`, api => reserve(api, name), [201, 409])
      if (!answer) return lose(name, 'reserve')
      // A reservation of ours that was not answered came after it had been made free.
      if (answer.status === 409) return makeFree(name)
      told.set(name, { state: 'reserved', token: answer.body.reservationToken })
      return
    }
    const { token } = now
    if (now.state === 'reserved' && dice.chance(0.9)) {
      addresses += 1
      const address = `10.${number}.${addresses >> 8}.${addresses & 255}`
      const answer = await ask(`commit ${name}`, api => commit(api, name, token, address), [200, 202])
      if (!answer) return lose(name, 'commit')
      told.set(name, { state: 'active', token, address })
      return
    }
    const body = { subdomain: name, reservationToken: token }
    const path = `/api/v1/pool/${pool}/release`
    const answer = await ask(`release ${name}`, api => api.call('DELETE', path, body), [200, 202])
    if (!answer) return lose(name, 'release')
    told.set(name, { state: 'free' })
  }

  const run = async (): Promise<void> => {
    while (!isOver()) {
      while (told.size < NAMES) {
        told.set(`n${number}-${made}`, { state: 'free' })
        made += 1
      }
      const [name, now] = dice.pick([...told])
      await next(name, now)
      // The machine is for the killed ones too, that start again.
      await sleep(dice.below(MOST_REST_MS))
    }
  }
  const ended = run()
  return {
    told,
    unanswered,
    get requests() {
      return requests
    },
    oddities,
    ended,
  }
}

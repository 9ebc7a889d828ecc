import { z } from 'zod'
import type { NameOperation, Seen } from '../checks/operations.ts'
import { ZONE } from '../environment/zone.ts'
import type { ApiClient, Settled } from './api-client.ts'
import type { Recorder } from './recorder.ts'

const path = `/api/v1/pool/${ZONE}`

const granted = z.object({
  reservationToken: z.string(),
  reservedAt: z.string(),
  expiresAt: z.string(),
})
const renewed = z.object({ expiresAt: z.string() })
const shown = z.object({
  subdomain: z.string(),
  state: z.enum(['reserved', 'active']),
  createdBy: z.string(),
  loadBalancerIP: z.string().optional(),
})
const listed = z.object({ allocations: z.array(shown) })
const checked = z.object({ available: z.boolean() })

const seenOf = ({ state, createdBy, loadBalancerIP }: z.infer<typeof shown>): Seen => ({
  state,
  owner: createdBy,
  address: loadBalancerIP ?? null,
})

/** What a client holds, as far as it was told. */
export interface Holding {
  readonly name: string
  readonly token: string
  readonly address: string | null
}

export interface Verbs {
  readonly reserve: (name: string) => Promise<Holding | undefined>
  readonly commit: (holding: Holding, address: string) => Promise<Holding | undefined>
  readonly renew: (holding: Holding) => Promise<Holding | undefined>
  /** Without a token: whoever has it. */
  readonly release: (name: string, token: string | null) => Promise<void>
  readonly get: (name: string) => Promise<void>
  readonly check: (name: string) => Promise<void>
  readonly list: () => Promise<void>
  readonly history: (name: string) => Promise<void>
}

/** The verbs of the API as a client calls them, each taken down. */
export const createVerbs = (
  caller: string,
  client: ApiClient,
  recorder: Recorder,
  onOddity: (oddity: string) => void,
): Verbs => {
  let owners = 0
  const odd = (what: string, { status, body }: { status: number; body: unknown }) =>
    onOddity(`${what} answered ${status} ${JSON.stringify(body)}`)
  const common = (name: string, { intention, attempts, start, end }: Settled) => ({
    name,
    intention,
    attempts,
    start,
    end,
  })
  const add = (act: NameOperation) => void recorder.acts.push(act)
  const deny = (verb: 'commit' | 'renew' | 'release', name: string, token: string | null, settled: Settled) => {
    const expected = { commit: [403, 404, 409, 410], renew: [403, 404, 409, 410], release: [403, 404] }[verb]
    if (!expected.includes(settled.status)) odd(`${verb} ${name}`, settled)
    add({ kind: 'denial', verb, token, status: settled.status, ...common(name, settled) })
  }

  return {
    async reserve(name) {
      owners += 1
      const owner = `${caller}/${owners}`
      const settled = await client.settle({
        operation: 'reserve',
        method: 'POST',
        path: `${path}/reserve`,
        body: { subdomain: name, createdBy: owner },
      })
      if (settled?.status !== 201) {
        if (settled && settled.status !== 409) odd(`reserve ${name}`, settled)
        return undefined
      }
      const { reservationToken: token, reservedAt, expiresAt } = granted.parse(settled.body)
      const times = { reservedAt: Date.parse(reservedAt), expiresAt: Date.parse(expiresAt) }
      add({ kind: 'grant', token, owner, ...times, ...common(name, settled) })
      return { name, token, address: null }
    },
    async commit({ name, token }, address) {
      const start = Date.now()
      const settled = await client.settle({
        operation: 'commit',
        method: 'POST',
        path: `${path}/commit`,
        body: { subdomain: name, reservationToken: token, sovereignFQDN: `${name}.${ZONE}`, loadBalancerIP: address },
      })
      if (!settled) {
        add({ kind: 'attempted-commit', name, intention: '', attempts: 0, token, start, end: Number.POSITIVE_INFINITY })
        return undefined
      }
      if (settled.status !== 200 && settled.status !== 202) {
        deny('commit', name, token, settled)
        return undefined
      }
      add({ kind: 'commitment', token, address, ...common(name, settled) })
      return { name, token, address }
    },
    async renew(holding) {
      const { name, token } = holding
      const body = { subdomain: name, reservationToken: token }
      const settled = await client.settle({ operation: 'renew', method: 'POST', path: `${path}/renew`, body })
      if (settled?.status !== 200) {
        if (settled) deny('renew', name, token, settled)
        return undefined
      }
      const { expiresAt } = renewed.parse(settled.body)
      add({ kind: 'renewal', token, expiresAt: Date.parse(expiresAt), ...common(name, settled) })
      return holding
    },
    async release(name, token) {
      const start = Date.now()
      const body = { subdomain: name, ...(token === null ? {} : { reservationToken: token }) }
      const settled = await client.settle({ operation: 'release', method: 'DELETE', path: `${path}/release`, body })
      if (!settled) {
        const end = Number.POSITIVE_INFINITY
        add({ kind: 'release', name, intention: '', attempts: 0, token, start, end, isAnswered: false })
      } else if (settled.status === 200 || settled.status === 202)
        add({ kind: 'release', token, isAnswered: true, ...common(name, settled) })
      else deny('release', name, token, settled)
    },
    async get(name) {
      const answer = await client.askAny({ operation: 'get', method: 'GET', path: `${path}/allocations/${name}` })
      if (answer?.status !== 200 && answer?.status !== 404) return
      const seen = answer.status === 404 ? null : seenOf(shown.parse(answer.body))
      const { start, end } = answer
      recorder.readings.push({ by: 'get', start, end, seen: new Map([[name, seen]]), isWhole: false })
    },
    async check(name) {
      const answer = await client.askAny({ operation: 'check', method: 'GET', path: `${path}/check?sub=${name}` })
      if (answer?.status !== 200 || !checked.parse(answer.body).available) return
      const { start, end } = answer
      recorder.readings.push({ by: 'check', start, end, seen: new Map([[name, null]]), isWhole: false })
    },
    async list() {
      const answer = await client.askAny({ operation: 'list', method: 'GET', path: `${path}/list`, isOperator: true })
      if (answer?.status !== 200) return
      const { allocations } = listed.parse(answer.body)
      const seen = new Map(allocations.map(allocation => [allocation.subdomain, seenOf(allocation)]))
      if (seen.size < allocations.length) onOddity('list has a name twice')
      recorder.readings.push({ by: 'list', start: answer.start, end: answer.end, seen, isWhole: true })
    },
    async history(name) {
      const query = `${path}/history?sub=${name}&limit=20`
      await client.askAny({ operation: 'history', method: 'GET', path: query, isOperator: true })
    },
  }
}

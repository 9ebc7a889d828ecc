import { z } from 'zod'
import type { NameOperation, ObservedState } from '../checks/operations.ts'
import { COVERING_NAME, ZONE } from '../environment/zone.ts'
import type { InvariantChecker } from '../invariants.ts'
import type { ApiClient, RetriedResponse } from './api-client.ts'
import type { Recorder } from './recorder.ts'

const path = `/api/v1/pool/${ZONE}`

const reserveResponse = z.object({
  reservationToken: z.string(),
  reservedAt: z.string(),
  expiresAt: z.string(),
})
const renewResponse = z.object({ expiresAt: z.string() })
const allocationResponse = z.object({
  subdomain: z.string(),
  state: z.enum(['reserved', 'active']),
  createdBy: z.string(),
  loadBalancerIP: z.string().optional(),
})
const listResponse = z.object({ allocations: z.array(allocationResponse) })
const checkResponse = z.object({ available: z.boolean() })

const toObservedState = ({ state, createdBy, loadBalancerIP }: z.infer<typeof allocationResponse>): ObservedState => ({
  state,
  owner: createdBy,
  address: loadBalancerIP ?? null,
})

/** A reservation or an active name of a client. */
export interface Holding {
  readonly name: string
  readonly token: string
  readonly address: string | null
}

export interface PoolOperations {
  readonly reserve: (name: string) => Promise<Holding | undefined>
  readonly commit: (holding: Holding, address: string) => Promise<Holding | undefined>
  readonly renew: (holding: Holding) => Promise<Holding | undefined>
  /** Null as the token: releases the name of any owner. */
  readonly release: (name: string, token: string | null) => Promise<void>
  readonly get: (name: string) => Promise<void>
  readonly check: (name: string) => Promise<void>
  readonly list: () => Promise<void>
  readonly history: (name: string) => Promise<void>
}

/** The pool operations of one client. The recorder gets each result. */
export const createPoolOperations = (
  caller: string,
  client: ApiClient,
  recorder: Recorder,
  invariants: InvariantChecker,
): PoolOperations => {
  let owners = 0
  const reportUnexpected = (what: string, { status, body }: { status: number; body: unknown }) =>
    invariants.reportAnomaly(`${what} got ${status} ${JSON.stringify(body)}`)
  const common = (name: string, { idempotencyKey, attempts, start, end }: RetriedResponse) => ({
    name,
    idempotencyKey,
    attempts,
    start,
    end,
  })
  const addOperation = (operation: NameOperation) => void recorder.operations.push(operation)
  const addRejection = (
    action: 'commit' | 'renew' | 'release',
    name: string,
    token: string | null,
    response: RetriedResponse,
  ) => {
    const expected = { commit: [403, 404, 409, 410], renew: [403, 404, 409, 410], release: [403, 404] }[action]
    if (!expected.includes(response.status)) reportUnexpected(`${action} ${name}`, response)
    addOperation({ kind: 'rejection', action, token, status: response.status, ...common(name, response) })
  }

  return {
    async reserve(name) {
      owners += 1
      const owner = `${caller}/${owners}`
      const response = await client.sendUntilAnswered({
        operation: 'reserve',
        method: 'POST',
        path: `${path}/reserve`,
        body: { subdomain: name, createdBy: owner },
      })
      if (response?.status !== 201) {
        const isExpected = response?.status === (name === COVERING_NAME ? 422 : 409)
        if (response && !isExpected) reportUnexpected(`reserve ${name}`, response)
        return undefined
      }
      const { reservationToken: token, reservedAt, expiresAt } = reserveResponse.parse(response.body)
      const times = { reservedAt: Date.parse(reservedAt), expiresAt: Date.parse(expiresAt) }
      addOperation({ kind: 'grant', token, owner, ...times, ...common(name, response) })
      return { name, token, address: null }
    },
    async commit({ name, token }, address) {
      const start = Date.now()
      const response = await client.sendUntilAnswered({
        operation: 'commit',
        method: 'POST',
        path: `${path}/commit`,
        body: { subdomain: name, reservationToken: token, sovereignFQDN: `${name}.${ZONE}`, loadBalancerIP: address },
      })
      if (!response) {
        addOperation({
          kind: 'unanswered-commit',
          name,
          idempotencyKey: '',
          attempts: 0,
          token,
          start,
          end: Number.POSITIVE_INFINITY,
        })
        return undefined
      }
      if (response.status !== 200 && response.status !== 202) {
        addRejection('commit', name, token, response)
        return undefined
      }
      addOperation({ kind: 'commitment', token, address, ...common(name, response) })
      return { name, token, address }
    },
    async renew(holding) {
      const { name, token } = holding
      const body = { subdomain: name, reservationToken: token }
      const response = await client.sendUntilAnswered({
        operation: 'renew',
        method: 'POST',
        path: `${path}/renew`,
        body,
      })
      if (response?.status !== 200) {
        if (response) addRejection('renew', name, token, response)
        return undefined
      }
      const { expiresAt } = renewResponse.parse(response.body)
      addOperation({ kind: 'renewal', token, expiresAt: Date.parse(expiresAt), ...common(name, response) })
      return holding
    },
    async release(name, token) {
      const start = Date.now()
      const body = { subdomain: name, ...(token === null ? {} : { reservationToken: token }) }
      const response = await client.sendUntilAnswered({
        operation: 'release',
        method: 'DELETE',
        path: `${path}/release`,
        body,
      })
      if (!response) {
        const end = Number.POSITIVE_INFINITY
        addOperation({ kind: 'release', name, idempotencyKey: '', attempts: 0, token, start, end, isAnswered: false })
      } else if (response.status === 200 || response.status === 202)
        addOperation({ kind: 'release', token, isAnswered: true, ...common(name, response) })
      else addRejection('release', name, token, response)
    },
    async get(name) {
      const response = await client.sendToAny({ operation: 'get', method: 'GET', path: `${path}/allocations/${name}` })
      if (response?.status !== 200 && response?.status !== 404) return
      const states = response.status === 404 ? null : toObservedState(allocationResponse.parse(response.body))
      const { start, end } = response
      recorder.observations.push({
        source: 'get',
        start,
        end,
        states: new Map([[name, states]]),
        isCompleteList: false,
      })
    },
    async check(name) {
      const response = await client.sendToAny({ operation: 'check', method: 'GET', path: `${path}/check?sub=${name}` })
      if (response?.status !== 200 || !checkResponse.parse(response.body).available) return
      const { start, end } = response
      recorder.observations.push({
        source: 'check',
        start,
        end,
        states: new Map([[name, null]]),
        isCompleteList: false,
      })
    },
    async list() {
      const response = await client.sendToAny({
        operation: 'list',
        method: 'GET',
        path: `${path}/list`,
        isOperator: true,
      })
      if (response?.status !== 200) return
      const { allocations } = listResponse.parse(response.body)
      const states = new Map(allocations.map(allocation => [allocation.subdomain, toObservedState(allocation)]))
      if (states.size < allocations.length) invariants.reportAnomaly('list has a name twice')
      recorder.observations.push({
        source: 'list',
        start: response.start,
        end: response.end,
        states: states,
        isCompleteList: true,
      })
    },
    async history(name) {
      const query = `${path}/history?sub=${name}&limit=20`
      await client.sendToAny({ operation: 'history', method: 'GET', path: query, isOperator: true })
    },
  }
}

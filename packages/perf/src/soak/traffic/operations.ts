import { setTimeout as sleep } from 'node:timers/promises'
import * as z from 'zod'
import type { NameOperation, ObservedState, RejectedAction } from '../checks/operations.ts'
import { COVERING_NAME, ZONE, type Zone } from '../environment/zone.ts'
import type { InvariantChecker } from '../invariants.ts'
import type { ApiClient, ApiRequest, RetriedResponse } from './api-client.ts'
import type { Recorder } from './recorder.ts'

const path = `/api/v1/pool/${ZONE}`
const QUERY_PAUSE_MS = 20
/** Of one update. The update itself can take a minute. */
const MAX_QUERIES = 200
/** After the response: the records may be published later. */
const QUERIES_AFTER = 10

const reserveResponse = z.object({
  reservationToken: z.string(),
  reservedAt: z.string(),
  expiresAt: z.string(),
})
const rejectionStatuses: Readonly<Record<RejectedAction, readonly number[]>> = {
  'take-back': [409],
  commit: [403, 404, 409, 410],
  update: [403, 404, 409],
  renew: [403, 404, 409, 410],
  release: [403, 404],
}
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

export const republishRequest: ApiRequest = {
  operation: 'republish',
  method: 'POST',
  path: `${path}/republish`,
  isOperator: true,
  canBeBusy: true,
}

/** A reservation or an active name of a client. */
export interface Holding {
  readonly name: string
  readonly token: string
  readonly address: string | null
}

export interface PoolOperations {
  readonly reserve: (name: string) => Promise<Holding | undefined>
  /** Reserves a released name with its former token. */
  readonly takeBack: (released: Holding) => Promise<Holding | undefined>
  readonly commit: (holding: Holding, address: string) => Promise<Holding | undefined>
  /** Changes the address of an active name, while a resolver queries it. */
  readonly update: (holding: Holding, address: string) => Promise<Holding | undefined>
  readonly renew: (holding: Holding) => Promise<Holding | undefined>
  /** Null as the token: releases the name of any owner. */
  readonly release: (name: string, token: string | null) => Promise<void>
  readonly get: (name: string) => Promise<void>
  readonly check: (name: string) => Promise<void>
  readonly list: () => Promise<void>
  readonly history: (name: string) => Promise<void>
  /** Ends the cool-off of a name, as an operator. */
  readonly liftCoolOff: (name: string) => Promise<void>
  /** Brings all active names to the template of one replica, as an operator. */
  readonly republish: () => Promise<void>
}

export interface PoolOperationsOptions {
  /** Part of the owner of each reservation. */
  readonly caller: string
  readonly client: ApiClient
  readonly zone: Pick<Zone, 'addresses'>
  readonly recorder: Recorder
  readonly invariants: InvariantChecker
  /** Every token that a response contains. */
  readonly onToken: (token: string) => void
}

/** The pool operations of one client. The recorder gets each result. */
export const createPoolOperations = ({
  caller,
  client,
  zone,
  recorder,
  invariants,
  onToken,
}: PoolOperationsOptions): PoolOperations => {
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
  const addRejection = (action: RejectedAction, name: string, token: string | null, response: RetriedResponse) => {
    if (!rejectionStatuses[action].includes(response.status)) reportUnexpected(`${action} ${name}`, response)
    addOperation({ kind: 'rejection', action, token, status: response.status, ...common(name, response) })
  }

  const reserve = async (name: string, formerToken: string | null): Promise<Holding | undefined> => {
    owners += 1
    const owner = `${caller}/${owners}`
    const response = await client.sendUntilAnswered({
      operation: formerToken === null ? 'reserve' : 'take back',
      name,
      method: 'POST',
      path: `${path}/reserve`,
      body: { subdomain: name, createdBy: owner, ...(formerToken === null ? {} : { reservationToken: formerToken }) },
    })
    if (response?.status !== 201) {
      if (response && formerToken !== null) addRejection('take-back', name, formerToken, response)
      else if (response && response.status !== (name === COVERING_NAME ? 422 : 409))
        reportUnexpected(`reserve ${name}`, response)
      return undefined
    }
    const { reservationToken: token, reservedAt, expiresAt } = reserveResponse.parse(response.body)
    onToken(token)
    const times = { reservedAt: Date.parse(reservedAt), expiresAt: Date.parse(expiresAt) }
    addOperation({ kind: 'grant', token, owner, formerToken, ...times, ...common(name, response) })
    return { name, token, address: null }
  }
  /** Queries the address of the name until some time after `isOver`. */
  const watchAddress = async ({ name, token }: Holding, isOver: () => boolean): Promise<void> => {
    let left = MAX_QUERIES
    while (left > 0) {
      left = isOver() ? Math.min(left, QUERIES_AFTER) - 1 : left - 1
      const start = Date.now()
      const addresses = await zone.addresses(`${name}.${ZONE}`)
      if (addresses) recorder.addressReadings.push({ name, token, start, end: Date.now(), addresses })
      await sleep(QUERY_PAUSE_MS)
    }
  }

  return {
    reserve: name => reserve(name, null),
    takeBack: ({ name, token }) => reserve(name, token),
    async update(holding, address) {
      const { name, token } = holding
      let isOver = false
      const watching = watchAddress(holding, () => isOver)
      const start = Date.now()
      const response = await client.sendUntilAnswered({
        operation: 'update',
        name,
        method: 'POST',
        path: `${path}/update`,
        body: { subdomain: name, reservationToken: token, loadBalancerIP: address },
      })
      isOver = true
      await watching
      if (!response) {
        const end = Number.POSITIVE_INFINITY
        const unanswered = { idempotencyKey: '', attempts: 0, start, end, isAnswered: false }
        addOperation({ kind: 'update', name, token, address, ...unanswered })
        return undefined
      }
      if (response.status !== 200 && response.status !== 202) {
        addRejection('update', name, token, response)
        return undefined
      }
      addOperation({ kind: 'update', token, address, isAnswered: true, ...common(name, response) })
      return { name, token, address }
    },
    async commit({ name, token }, address) {
      const start = Date.now()
      const response = await client.sendUntilAnswered({
        operation: 'commit',
        name,
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
        name,
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
        name,
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
      const response = await client.sendToAny({
        operation: 'get',
        name,
        method: 'GET',
        path: `${path}/allocations/${name}`,
      })
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
      const response = await client.sendToAny({
        operation: 'check',
        name,
        method: 'GET',
        path: `${path}/check?sub=${name}`,
      })
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
      await client.sendToAny({ operation: 'history', name, method: 'GET', path: query, isOperator: true })
    },
    async liftCoolOff(name) {
      const start = Date.now()
      const response = await client.sendUntilAnswered({
        operation: 'lift cool-off',
        name,
        method: 'DELETE',
        path: `${path}/cool-off/${name}`,
        isOperator: true,
      })
      if (response?.status === 204) addOperation({ kind: 'lift', isAnswered: true, ...common(name, response) })
      else if (!response || response.attempts > 1) {
        // An attempt without a response may have succeeded.
        const end = response?.end ?? Number.POSITIVE_INFINITY
        addOperation({ kind: 'lift', name, idempotencyKey: '', attempts: 0, start, end, isAnswered: false })
      }
      if (response && ![204, 404].includes(response.status)) reportUnexpected(`lift cool-off of ${name}`, response)
    },
    async republish() {
      const response = await client.sendUntilAnswered(republishRequest)
      if (response && ![200, 202].includes(response.status)) reportUnexpected('republish', response)
    },
  }
}

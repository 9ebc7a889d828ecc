import { setTimeout as sleep } from 'node:timers/promises'
import type { Result } from '@pool/client/allocation'
import type { NameObservation, NameOperation, ObservedState, RejectedAction } from '../checks/operations.ts'
import { COVERING_NAME, ZONE, type Zone } from '../environment/zone.ts'
import type { InvariantChecker } from '../invariants.ts'
import type { ApiClient, ApiResponse, CallFacts } from './api-client.ts'
import type { Recorder } from './recorder.ts'

const domain = ZONE
const QUERY_PAUSE_MS = 20
/** Of one update. The update itself can take a minute. */
const MAX_QUERIES = 200
/** After the response: the records may be published later. */
const QUERIES_AFTER = 10

const rejectionStatuses: Readonly<Record<RejectedAction, readonly number[]>> = {
  'take-back': [409],
  commit: [403, 404, 409, 410],
  update: [403, 404, 409],
  renew: [403, 404, 409, 410],
  release: [403, 404],
}

type AllocationResult = Result<'getAllocation'>

const toObservedState = (allocation: AllocationResult): ObservedState => ({
  state: allocation.state,
  owner: allocation.createdBy,
  address: allocation.state === 'active' ? (allocation.loadBalancerIP ?? null) : null,
})

export const republishZone = (client: ApiClient): Promise<ApiResponse<unknown> | undefined> =>
  client.send({ operation: 'republish', isOperator: true, canBeBusy: true }, (api, limits) =>
    api.republishZone({ domain }, limits),
  )

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
  const common = (name: string, { callId, attempts, start, end }: CallFacts) => ({ name, callId, attempts, start, end })
  const unanswered = (name: string, start: number) => ({
    name,
    callId: '',
    attempts: 0,
    start,
    end: Number.POSITIVE_INFINITY,
  })
  const addOperation = (operation: NameOperation) => void recorder.operations.push(operation)
  const addRejection = (
    action: RejectedAction,
    name: string,
    token: string | null,
    response: CallFacts & { readonly status: number; readonly body: unknown },
  ) => {
    const { status } = response
    if (!rejectionStatuses[action].includes(status)) reportUnexpected(`${action} ${name}`, response)
    addOperation({ kind: 'rejection', action, token, status, ...common(name, response) })
  }
  const observe = (
    source: string,
    { start, end }: CallFacts,
    states: NameObservation['states'],
    isCompleteList = false,
  ) => void recorder.observations.push({ source, start, end, states, isCompleteList })

  const reserve = async (name: string, formerToken: string | null): Promise<Holding | undefined> => {
    owners += 1
    const owner = `${caller}/${owners}`
    const former = formerToken === null ? {} : { reservationToken: formerToken }
    const response = await client.send(
      { operation: formerToken === null ? 'reserve' : 'take back', name },
      (api, limits) => api.reserveName({ domain, subdomain: name, createdBy: owner, ...former }, limits),
    )
    if (response?.kind !== 'success') {
      if (response && formerToken !== null) addRejection('take-back', name, formerToken, response)
      else if (response && response.status !== (name === COVERING_NAME ? 422 : 409))
        reportUnexpected(`reserve ${name}`, response)
      return undefined
    }
    const { reservationToken: token, reservedAt, expiresAt } = response.body
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
      const response = await client.send({ operation: 'update', name }, (api, limits) =>
        api.updateName({ domain, subdomain: name, reservationToken: token, loadBalancerIP: address }, limits),
      )
      isOver = true
      await watching
      if (!response) {
        addOperation({ kind: 'update', token, address, isAnswered: false, ...unanswered(name, start) })
        return undefined
      }
      if (response.kind === 'rejection') {
        addRejection('update', name, token, response)
        return undefined
      }
      addOperation({ kind: 'update', token, address, isAnswered: true, ...common(name, response) })
      return { name, token, address }
    },
    async commit({ name, token }, address) {
      const start = Date.now()
      const commitment = {
        domain,
        subdomain: name,
        reservationToken: token,
        sovereignFQDN: `${name}.${ZONE}`,
        loadBalancerIP: address,
      }
      const response = await client.send({ operation: 'commit', name }, (api, limits) =>
        api.commitName(commitment, limits),
      )
      if (!response) {
        addOperation({ kind: 'unanswered-commit', token, ...unanswered(name, start) })
        return undefined
      }
      if (response.kind === 'rejection') {
        addRejection('commit', name, token, response)
        return undefined
      }
      addOperation({ kind: 'commitment', token, address, ...common(name, response) })
      return { name, token, address }
    },
    async renew(holding) {
      const { name, token } = holding
      const response = await client.send({ operation: 'renew', name }, (api, limits) =>
        api.renewReservation({ domain, subdomain: name, reservationToken: token }, limits),
      )
      if (response?.kind !== 'success') {
        if (response) addRejection('renew', name, token, response)
        return undefined
      }
      const expiresAt = Date.parse(response.body.expiresAt)
      addOperation({ kind: 'renewal', token, expiresAt, ...common(name, response) })
      return holding
    },
    async release(name, token) {
      const start = Date.now()
      const proof = token === null ? {} : { reservationToken: token }
      const response = await client.send({ operation: 'release', name }, (api, limits) =>
        api.releaseName({ domain, subdomain: name, ...proof }, limits),
      )
      if (!response) addOperation({ kind: 'release', token, isAnswered: false, ...unanswered(name, start) })
      else if (response.kind === 'success')
        addOperation({ kind: 'release', token, isAnswered: true, ...common(name, response) })
      else addRejection('release', name, token, response)
    },
    async get(name) {
      const response = await client.sendOnce({ operation: 'get', name }, (api, limits) =>
        api.getAllocation({ domain, subdomain: name }, limits),
      )
      if (response?.kind === 'success') observe('get', response, new Map([[name, toObservedState(response.body)]]))
      else if (response?.status === 404) observe('get', response, new Map([[name, null]]))
      else if (response) reportUnexpected(`get ${name}`, response)
    },
    async check(name) {
      const response = await client.sendOnce({ operation: 'check', name }, (api, limits) =>
        api.checkName({ domain, sub: name }, limits),
      )
      if (response?.kind === 'success' && response.body.available) observe('check', response, new Map([[name, null]]))
    },
    async list() {
      const response = await client.sendOnce({ operation: 'list', isOperator: true }, (api, limits) =>
        api.listAllocations({ domain }, limits),
      )
      if (response?.kind !== 'success') return
      const { allocations } = response.body
      const states = new Map(allocations.map(allocation => [allocation.subdomain, toObservedState(allocation)]))
      if (states.size < allocations.length) invariants.reportAnomaly('list has a name twice')
      observe('list', response, states, true)
    },
    async history(name) {
      await client.sendOnce({ operation: 'history', name, isOperator: true }, (api, limits) =>
        api.readHistory({ domain, sub: name, limit: 20 }, limits),
      )
    },
    async liftCoolOff(name) {
      const start = Date.now()
      const response = await client.sendAgain({ operation: 'lift cool-off', name, isOperator: true }, (api, limits) =>
        api.liftCoolOff({ domain, subdomain: name }, limits),
      )
      if (response?.kind === 'success') addOperation({ kind: 'lift', isAnswered: true, ...common(name, response) })
      else if (!response || response.attempts > 1) {
        // An attempt without a response may have succeeded.
        const end = response?.end ?? Number.POSITIVE_INFINITY
        addOperation({ kind: 'lift', isAnswered: false, ...unanswered(name, start), end })
      }
      if (response?.kind === 'rejection' && response.status !== 404)
        reportUnexpected(`lift cool-off of ${name}`, response)
    },
    async republish() {
      const response = await republishZone(client)
      if (response?.kind === 'rejection') reportUnexpected('republish', response)
    },
  }
}

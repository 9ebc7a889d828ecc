import { setTimeout as sleep } from 'node:timers/promises'
import * as z from 'zod'
import type { ObservedState } from '../checks/operations.ts'
import { ZONE } from '../environment/zone.ts'
import type { InvariantChecker } from '../invariants.ts'
import { CONTENDED_NAMES } from './names.ts'
import type { Quiescer } from './quiescer.ts'
import type { Recorder } from './recorder.ts'
import { type ApiCall, RecordingFetch, type RecordingFetchOptions } from './recording-fetch.ts'

export interface RawNamesOptions extends RecordingFetchOptions {
  readonly operatorToken: string
  readonly recorder: Recorder
  readonly quiescer: Quiescer
  readonly invariants: InvariantChecker
}

interface RawResponse {
  readonly status: number
  readonly text: string
  readonly start: number
  readonly end: number
}

const path = `/api/v1/pool/${ZONE}`
const TIMEOUT_MS = 8_000
const MEAN_PAUSE_MS = 250

const allocation = z.object({
  subdomain: z.string(),
  state: z.enum(['reserved', 'active']),
  createdBy: z.string(),
  loadBalancerIP: z.string().optional(),
})
const list = z.object({ allocations: z.array(allocation) })

const toState = ({ state, createdBy, loadBalancerIP }: z.infer<typeof allocation>): ObservedState => ({
  state,
  owner: createdBy,
  address: loadBalancerIP ?? null,
})

/** Returns a function that sends one request with bare fetch, without the client. Undefined: no response. */
const createSend = (name: string, options: RawNamesOptions) => {
  const recording = new RecordingFetch(options)
  let count = 0
  return async (call: ApiCall, target: string, init: RequestInit = {}): Promise<RawResponse | undefined> => {
    count += 1
    const record = { id: `${name}-${count}`, attempts: 0, start: 0, end: 0 }
    const headers = { ...(call.isOperator && { Authorization: `Bearer ${options.operatorToken}` }), ...init.headers }
    const signal = AbortSignal.timeout(TIMEOUT_MS)
    const send = () => recording.fetch(`http://replicas.invalid${target}`, { ...init, headers, signal })
    const response = await recording.run(call, record, send).catch(() => undefined)
    if (!response) return undefined
    return { status: response.status, text: await response.text(), start: record.start, end: record.end }
  }
}

/** Reads names and lists with bare fetch, so that a fault of the client cannot hide one of the service. */
export const runNameObserver = async (options: RawNamesOptions): Promise<void> => {
  const { prng, recorder, quiescer } = options
  const send = createSend('observer', options)
  const readOne = async () => {
    const name = `n${prng.below(CONTENDED_NAMES)}`
    const response = await send({ operation: 'get', name }, `${path}/allocations/${name}`)
    if (response?.status !== 200 && response?.status !== 404) return
    const { status, text, start, end } = response
    const state = status === 404 ? null : toState(allocation.parse(JSON.parse(text)))
    recorder.observations.push({ source: 'get', start, end, states: new Map([[name, state]]), isCompleteList: false })
  }
  const readAll = async () => {
    const response = await send({ operation: 'list', isOperator: true }, `${path}/list`)
    if (response?.status !== 200) return
    const { text, start, end } = response
    const { allocations } = list.parse(JSON.parse(text))
    const states = new Map(allocations.map(entry => [entry.subdomain, toState(entry)]))
    recorder.observations.push({ source: 'list', start, end, states, isCompleteList: true })
  }
  const step = () => (prng.chance(0.1) ? readAll() : readOne())
  while (await quiescer.run(step)) await sleep(prng.below(2 * MEAN_PAUSE_MS))
}

interface HostileRequest {
  readonly target: string
  readonly init: RequestInit
  /** The statuses that are right. */
  readonly statuses: readonly number[]
}

const post = (body: string, headers: Readonly<Record<string, string>> = {}): RequestInit => ({
  method: 'POST',
  body,
  headers: { 'Content-Type': 'application/json', ...headers },
})
const TOKEN = '00000000-0000-4000-8000-000000000000'

/** Malformed requests, and well-formed ones of a client that has no right to the name. */
const hostileRequests: readonly ((name: string) => HostileRequest)[] = [
  () => ({ target: `${path}/reserve`, init: post('{"subdomain":'), statuses: [400] }),
  () => ({ target: `${path}/reserve`, init: post('{"subdomain":"\\u0000"}'), statuses: [400, 422] }),
  () => ({
    target: `${path}/reserve`,
    init: post(JSON.stringify({ subdomain: 'a'.repeat(64) })),
    statuses: [400, 422],
  }),
  () => ({ target: `${path}/commit`, init: post('[]'), statuses: [400, 422] }),
  name => ({
    target: `${path}/commit`,
    init: post(
      JSON.stringify({
        subdomain: name,
        reservationToken: TOKEN,
        sovereignFQDN: `${name}.${ZONE}`,
        loadBalancerIP: '192.0.2.66',
      }),
    ),
    statuses: [403, 404, 409, 410],
  }),
  name => ({
    target: `${path}/release`,
    init: { ...post(JSON.stringify({ subdomain: name, reservationToken: TOKEN })), method: 'DELETE' },
    statuses: [403, 404],
  }),
  name => ({
    target: `${path}/update`,
    init: post(JSON.stringify({ subdomain: name, reservationToken: TOKEN, loadBalancerIP: '192.0.2.66' })),
    statuses: [403, 404, 409],
  }),
  () => ({ target: `${path}/reserve`, init: { method: 'PATCH', body: '{}' }, statuses: [405] }),
  () => ({ target: `${path}/check?sub=%ff`, init: {}, statuses: [200, 400, 422] }),
  name => ({
    target: `${path}/cool-off/${name}`,
    init: { method: 'DELETE', headers: { Authorization: 'Bearer wrong' } },
    statuses: [401, 403, 404],
  }),
]

/** Sends hostile requests with bare fetch. Each must be rejected, and none may have an effect. */
export const runHostileClient = async (options: RawNamesOptions): Promise<void> => {
  const { prng, quiescer, invariants } = options
  const send = createSend('hostile', options)
  const step = async () => {
    const name = `n${prng.below(CONTENDED_NAMES)}`
    const { target, init, statuses } = prng.pick(hostileRequests)(name)
    const response = await send({ operation: 'hostile', name }, target, init)
    if (response && response.status < 500 && !statuses.includes(response.status))
      invariants.reportAnomaly(`hostile ${init.method ?? 'GET'} ${target} got ${response.status} ${response.text}`)
  }
  while (await quiescer.run(step)) await sleep(prng.below(2 * MEAN_PAUSE_MS))
}

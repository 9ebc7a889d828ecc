import type { Lease, RenewLeasesRequest, RenewLeasesResponse } from '@pool/contract/lease'
import { parseCompletion } from '@pool/test-kit/linearizability/controller.ts'
import type { Completion, Invocation, Operation } from '@pool/test-kit/linearizability/history.ts'
import type { LeadershipChecker } from '../checks/leadership.ts'
import type { Witness } from '../environment/witness.ts'
import type { InvariantChecker } from '../invariants.ts'
import type { Quiescer } from './quiescer.ts'
import type { Recorder } from './recorder.ts'

const REQUEST_TIMEOUT_MS = 4_000
const BATCH_PATH = '/leases/renew'
const SLOT_PATH = /^\/lease\/([^/]+)$/

export interface LeaseRecorderOptions {
  readonly witness: Pick<Witness, 'url' | 'token'>
  readonly recorder: Recorder
  readonly quiescer: Quiescer
  readonly invariants: InvariantChecker
  readonly leadership: LeadershipChecker
}

type Times = Pick<Operation, 'start' | 'end' | 'sentAt' | 'receivedAt'>

interface Sender {
  readonly identity: string
  readonly signal: AbortSignal | null | undefined
}

interface LeaseExchange {
  readonly status: number
  readonly tag: string
  readonly text: string
  readonly headers: Headers
}

const parseGeneration = (tag: string | null): number => Number((tag ?? '').replaceAll('"', ''))

/** What a request for one slot asks of the witness. */
const parseInvocation = (method: string, headers: Headers, body: string): Invocation => {
  if (method === 'PUT') {
    const { holder, ttlSeconds, op } = JSON.parse(body)
    return { kind: op, holder, generation: parseGeneration(headers.get('If-Match')), ttlMs: ttlSeconds * 1_000 }
  }
  if (method === 'DELETE') {
    const generation = parseGeneration(headers.get('If-Match'))
    return { kind: 'release', holder: headers.get('X-Holder') ?? '', generation }
  }
  const known = headers.get('If-None-Match')
  return known === null ? { kind: 'read' } : { kind: 'read', known: parseGeneration(known) }
}

const parseWaitSeconds = (headers: Headers): number => Number(/wait=(\d+)/.exec(headers.get('Prefer') ?? '')?.[1] ?? 0)

/** 200 to a wait with the known generation means that the lease expired, as in a read without a condition. */
const toRecorded = (invocation: Invocation, completion: Completion | undefined, waitSeconds: number): Invocation =>
  invocation.kind === 'read' && waitSeconds > 0 && completion?.status !== 304 ? { kind: 'read' } : invocation

/**
 * Creates the `fetch` of each holder. It records every request as an operation on its slots, as it is on the wire. A request
 * continues after its sender has aborted it, until its response or its own timeout, so that the history shows its effect.
 * It waits while the traffic is paused.
 */
export const createLeaseRecorder = (options: LeaseRecorderOptions): ((identity: string) => typeof fetch) => {
  const { witness, recorder, quiescer, invariants, leadership } = options

  /** Only a response that its sender receives can extend its tenure. */
  const observe = (sender: Sender, slot: string, lease: Lease, remainingMs: number, sentAt: number): void => {
    if (lease.holder === sender.identity && !sender.signal?.aborted)
      leadership.observe(slot, lease, remainingMs, sentAt)
  }

  const send = async (url: URL, init: RequestInit, waitSeconds: number): Promise<LeaseExchange> => {
    const timeoutMs = REQUEST_TIMEOUT_MS + waitSeconds * 1_000
    const response = await fetch(url, { ...init, signal: AbortSignal.timeout(timeoutMs) })
    const { status, headers } = response
    return { status, tag: headers.get('etag') ?? '', text: await response.text(), headers }
  }

  const recordSlot = (
    sender: Sender,
    url: URL,
    init: RequestInit,
    exchange: LeaseExchange | undefined,
    times: Times,
  ): void => {
    const slot = decodeURIComponent(SLOT_PATH.exec(url.pathname)?.[1] ?? '')
    const headers = new Headers(init.headers)
    const invocation = parseInvocation(init.method ?? 'GET', headers, String(init.body ?? ''))
    const waitSeconds = parseWaitSeconds(headers)
    const operation = waitSeconds > 0 ? 'lease wait' : `lease ${invocation.kind}`
    recorder.count(operation, exchange?.status ?? null)
    const completion = exchange && exchange.status < 500 ? parseCompletion(exchange) : undefined
    if (!completion) addFailure(operation, exchange, times)
    recorder.leases.push({
      slot,
      invocation: toRecorded(invocation, completion, waitSeconds),
      ...times,
      ...(completion && { completion }),
    })
    if (completion && 'lease' in completion) {
      const remainingMs = Number(exchange?.headers.get('Lease-Remaining-Ms') ?? 0)
      observe(sender, slot, completion.lease, remainingMs, times.start)
    }
  }

  const recordBatch = (sender: Sender, init: RequestInit, exchange: LeaseExchange | undefined, times: Times): void => {
    const { holder, leases }: RenewLeasesRequest = JSON.parse(String(init.body))
    recorder.count('lease batch', exchange?.status ?? null)
    if (!exchange || exchange.status >= 500) addFailure('lease batch', exchange, times)
    const { results }: Partial<RenewLeasesResponse> = exchange?.status === 200 ? JSON.parse(exchange.text) : {}
    for (const [index, { slot, generation, ttlSeconds = 0 }] of leases.entries()) {
      const invocation = { kind: 'renew', holder, generation, ttlMs: ttlSeconds * 1_000 } as const
      const result = results?.[index]
      const hasLease = result?.status === 200 || result?.status === 412
      if (result && !hasLease) addFailure('lease batch', { status: result.status }, times)
      const completion = hasLease ? { status: result.status, lease: result.lease } : undefined
      recorder.leases.push({ slot, invocation, ...times, ...(completion && { completion }) })
      if (hasLease) observe(sender, slot, result.lease, result.remainingMs ?? 0, times.start)
    }
  }

  const addFailure = (operation: string, exchange: { readonly status: number } | undefined, times: Times): void => {
    const status = exchange?.status ?? null
    recorder.failedCalls.push({ target: 'witness', operation, status, start: times.sentAt, end: times.receivedAt })
  }

  const exchange = async (sender: Sender, url: URL, init: RequestInit): Promise<LeaseExchange | undefined> => {
    const [start, sentAt] = [performance.now(), Date.now()]
    const received = await send(url, init, parseWaitSeconds(new Headers(init.headers))).catch(() => undefined)
    const times = { start, sentAt, end: performance.now(), receivedAt: Date.now() }
    try {
      if (url.pathname === BATCH_PATH) recordBatch(sender, init, received, times)
      else recordSlot(sender, url, init, received, times)
    } catch (error) {
      invariants.reportAnomaly(`the witness: ${String(error)}`)
    }
    return received
  }

  return identity =>
    async (input, init = {}) => {
      const { pathname, search } = new URL(String(input))
      const { signal, ...request } = init
      const response = quiescer.request(async () => {
        if (signal?.aborted) throw signal.reason
        return exchange({ identity, signal }, new URL(pathname + search, witness.url), request)
      })
      const received = await Promise.race([response, whenAborted(signal)])
      if (!received) throw new TypeError('no response')
      const { status, text, headers } = received
      return new Response(text === '' ? null : text, { status, headers })
    }
}

const whenAborted = (signal: AbortSignal | null | undefined): Promise<never> =>
  new Promise((_, reject) => {
    signal?.addEventListener('abort', () => reject(signal.reason), { once: true })
  })

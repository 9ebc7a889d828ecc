import { holder, MAX_SLOTS, type RenewalResult } from '@pool/contract/lease'
import { checkOptions } from '../options.ts'
import { systemTiming, type Timing } from '../timing.ts'
import type { CallResult, LeaseCalls, LeaseWriteInput } from './lease-calls.ts'
import { type LeaseClient, toFailure } from './lease-client.ts'

export interface RenewalBatchOptions {
  readonly leases: LeaseClient
  /** The holder name of all electors of the batch. */
  readonly identity: string
  /** Milliseconds that the first renewal waits for others: 10 by default. */
  readonly windowMs?: number
  readonly timing?: Timing
}

const DEFAULT_WINDOW_MS = 10

interface PendingRenewal {
  readonly slot: string
  readonly write: LeaseWriteInput
  readonly signal: AbortSignal
  readonly resolve: (result: CallResult) => void
}

const toCallResult = (result: RenewalResult): CallResult => {
  if (result.status === 200) return { kind: 'granted', lease: { ...result.lease, remainingMs: result.remainingMs } }
  if (result.status === 412) {
    const { lease, remainingMs = 0 } = result
    return { kind: 'observed', lease: { ...lease, remainingMs }, waited: true }
  }
  const error = new Error(`renewLeases: ${result.slot}: ${result.status} ${result.error}`)
  return { kind: result.status === 403 ? 'failed' : 'unknown', retryAfterMs: 0, error }
}

/** Aborted when no elector waits for its renewal any more. */
const whenAllAborted = (batch: readonly PendingRenewal[]): AbortSignal => {
  const request = new AbortController()
  let waiting = batch.length
  const leave = () => {
    waiting -= 1
    if (waiting === 0) request.abort()
  }
  for (const { signal } of batch) {
    if (signal.aborted) leave()
    else signal.addEventListener('abort', leave, { once: true })
  }
  return request.signal
}

/**
 * Sends the renewals of many electors in one request. Pass the batch as `leases`, and one `renewalPhaseMs`, to each elector:
 * then all of them renew at the same time.
 */
export class RenewalBatch {
  readonly calls: LeaseCalls
  readonly #options: RenewalBatchOptions
  readonly #timing: Timing
  #pending: PendingRenewal[] = []

  /** Throws a TypeError if an option cannot be used. */
  constructor(options: RenewalBatchOptions) {
    checkOptions('RenewalBatch', options, {
      leases: 'object',
      identity: 'any',
      windowMs: 'milliseconds',
      timing: 'object',
    })
    if (!options.leases?.calls) throw new TypeError('RenewalBatch: leases must be a LeaseClient.')
    if (!holder.safeParse(options.identity).success)
      throw new TypeError('RenewalBatch: identity must be from createIdentity.')
    this.#options = options
    this.#timing = options.timing ?? systemTiming
    this.calls = { ...options.leases.calls, renew: (slot, write, { signal }) => this.#renew(slot, write, signal) }
  }

  #renew(slot: string, write: LeaseWriteInput, signal: AbortSignal): Promise<CallResult> {
    return new Promise(resolve => {
      this.#pending.push({ slot, write, signal, resolve })
      if (this.#pending.length === MAX_SLOTS) void this.#flush()
      else if (this.#pending.length === 1) {
        this.#timing.schedule(this.#options.windowMs ?? DEFAULT_WINDOW_MS, () => void this.#flush())
      }
    })
  }

  async #flush(): Promise<void> {
    const batch = this.#pending
    if (batch.length === 0) return
    this.#pending = []
    const { leases, identity } = this.#options
    try {
      const items = batch.map(({ slot, write: { generation, ttlMs } }) => ({ slot, generation, ttlMs }))
      const results = await leases.renewMany(identity, items, { signal: whenAllAborted(batch) })
      for (const [index, { resolve }] of batch.entries()) {
        const result = results[index]
        resolve(result ? toCallResult(result) : { kind: 'unknown', retryAfterMs: 0 })
      }
    } catch (error) {
      for (const { resolve } of batch) resolve(toFailure('write', error))
    }
  }
}

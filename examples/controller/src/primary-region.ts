import { monitorEventLoopDelay } from 'node:perf_hooks'
import { setTimeout as sleep } from 'node:timers/promises'
import type { LeadershipContext } from '@pool/client/leases'
import { log } from './log.ts'

const STAND_DOWN_TIMEOUT_MS = 5_000

/** The resource that names the primary region. It rejects a fencing token lower than the highest that it has seen, with 409. */
export class PrimaryRegion {
  readonly #url: string
  readonly #region: string
  readonly #token: string

  /** `token` is the bearer token of the resource. */
  constructor(url: string, region: string, token: string) {
    this.#url = url
    this.#region = region
    this.#token = token
  }

  /** Keeps this region the primary one until the tenure ends. The elector releases the lease when the promise has settled. */
  async lead(context: LeadershipContext, intervalMs: number): Promise<void> {
    const token = context.fencingToken
    log({ msg: 'started leading', token })
    // It throws as soon as the tenure has ended, and adds the fencing token.
    const guarded = context.guard({ claim: (fence: number) => this.#send('PUT', fence, context.signal) })
    // A blocked event loop delays the end of the work, so its longest delay is logged.
    using delay = monitorEventLoopDelay()
    delay.enable()
    while (context.isLeader()) {
      delay.reset()
      try {
        await guarded.claim()
      } catch (error) {
        log({ msg: 'the resource was not written', token, error: String(error) })
      }
      await sleep(intervalMs, undefined, { signal: context.signal }).catch(() => {})
    }
    const lateMs = Math.round(delay.max / 1e6)
    // The signal of the tenure is aborted: this request has a timeout of its own.
    await this.#send('DELETE', token, AbortSignal.timeout(STAND_DOWN_TIMEOUT_MS)).catch(error =>
      log({ msg: 'not stood down', token, error: String(error) }),
    )
    log({ msg: 'stopped leading', token, lateMs })
  }

  async #send(method: 'PUT' | 'DELETE', token: number, signal: AbortSignal): Promise<void> {
    const response = await fetch(this.#url, {
      method,
      headers: { Authorization: `Bearer ${this.#token}`, 'X-Fencing-Token': String(token) },
      ...(method === 'PUT' ? { body: this.#region } : {}),
      signal,
    })
    await response.body?.cancel()
    if (response.status === 409) throw new Error('the resource has seen a newer fencing token')
    if (!response.ok) throw new Error(`the resource responded ${response.status}`)
  }
}

import type { CallResult, LeaseCalls } from '../../../src/leases/lease-calls.ts'
import { ModelWitness } from './model-witness.ts'

/** One model witness for each slot, by the timers of the process. Each response comes after `latencyMs`. */
export class ModelWitnesses {
  readonly calls: LeaseCalls
  /** The requests so far: `acquire slot`. */
  readonly requests: string[] = []
  latencyMs = 1
  /** No response arrives from now on. */
  isDown = false
  /** Requests arrive, and of their responses only those to reads. */
  isMute = false
  /** When the path ends a wait of these seconds, without a response of the witness. */
  toWaitLimitMs = (_seconds: number): number => Number.POSITIVE_INFINITY
  #retryAfterMs: number | undefined
  readonly #slots = new Map<string, ModelWitness>()

  constructor() {
    const write = (
      kind: 'acquire' | 'renew' | 'release',
      slot: string,
      holder: string,
      generation: number,
      ttlMs = 0,
    ) =>
      this.#send(`${kind} ${slot}`, respond => {
        const witness = this.slot(slot)
        respond(witness.write(kind, holder, generation, ttlMs, performance.now()))
        if (kind !== 'release') setTimeout(() => witness.notify(performance.now()), ttlMs)
      })
    this.calls = {
      read: slot => this.#send(`read ${slot}`, respond => respond(this.slot(slot).read(performance.now()))),
      waitUntilVacant: (slot, seconds) =>
        this.#send(`wait ${slot}`, respond => {
          const limitMs = this.toWaitLimitMs(seconds)
          if (limitMs < seconds * 1_000) setTimeout(() => respond({ kind: 'failed', retryAfterMs: 0 }), limitMs)
          setTimeout(this.slot(slot).wait(performance.now(), respond), seconds * 1_000)
        }),
      acquire: (slot, { holder, generation, ttlMs }) => write('acquire', slot, holder, generation, ttlMs),
      renew: (slot, { holder, generation, ttlMs }) => write('renew', slot, holder, generation, ttlMs),
      release: (slot, { holder, generation }) => write('release', slot, holder, generation),
    }
  }

  slot(name: string): ModelWitness {
    const witness = this.#slots.get(name) ?? new ModelWitness()
    this.#slots.set(name, witness)
    return witness
  }

  /** The next write gets a 503, and has no effect. */
  failNextWrite(retryAfterMs: number): void {
    this.#retryAfterMs = retryAfterMs
  }

  #send(request: string, handle: (respond: (result: CallResult) => void) => void): Promise<CallResult> {
    this.requests.push(request)
    const isWrite = !/^(?:read|wait) /.test(request)
    const retryAfterMs = isWrite ? this.#retryAfterMs : undefined
    if (isWrite) this.#retryAfterMs = undefined
    if (retryAfterMs !== undefined) return Promise.resolve({ kind: 'unknown', retryAfterMs })
    return new Promise(resolve => {
      if (this.isDown) return
      handle(result => {
        setTimeout(() => {
          if (!this.isDown && !(this.isMute && isWrite)) resolve(result)
        }, this.latencyMs)
      })
    })
  }
}

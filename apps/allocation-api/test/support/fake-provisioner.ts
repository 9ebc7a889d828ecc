import type { LogLine } from '../../src/deployments/domain/types.ts'
import type { ApplyRequest, ApplyResult, Provisioner } from '../../src/deployments/provisioner.ts'

export interface FakeApply {
  readonly request: ApplyRequest
  readonly signal: AbortSignal
  log(line: LogLine): void
  end(result: ApplyResult): void
}

const waitForAbort = (signal: AbortSignal): Promise<void> =>
  new Promise(resolve => {
    if (signal.aborted) resolve()
    signal.addEventListener('abort', () => resolve())
  })

export const applied = (address = '192.0.2.1', outputs: object = {}): ApplyResult => ({
  kind: 'applied',
  outputs: { load_balancer_ip: address, ...outputs },
})

/** A provisioner whose applies the test ends. A signal stops an apply. */
export class FakeProvisioner implements Provisioner {
  readonly applies: FakeApply[] = []
  readonly cleanedUp: string[] = []
  missing: string | null = null
  /** The result of every apply; null if the test ends each one. */
  result: ApplyResult | null = null
  /** Whether an apply continues after it was stopped. */
  ignoresStop = false
  maxConcurrent = 0
  #concurrent = 0

  async preflight(): Promise<string | null> {
    return this.missing
  }

  async apply(request: ApplyRequest, log: (line: LogLine) => void, signal: AbortSignal): Promise<ApplyResult> {
    this.#concurrent += 1
    this.maxConcurrent = Math.max(this.maxConcurrent, this.#concurrent)
    const { promise, resolve } = Promise.withResolvers<ApplyResult>()
    this.applies.push({ request, signal, log, end: resolve })
    log({ phase: 'apply', level: 'info', message: `applying ${request.stateKey}` })
    if (this.result) resolve(this.result)
    const result = await Promise.race([
      promise,
      ...(this.ignoresStop ? [] : [waitForAbort(signal).then((): ApplyResult => ({ kind: 'stopped' }))]),
    ])
    this.#concurrent -= 1
    return result
  }

  async cleanUp(id: string): Promise<void> {
    this.cleanedUp.push(id)
  }
}

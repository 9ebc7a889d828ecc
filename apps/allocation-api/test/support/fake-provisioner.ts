import type { DeploymentLogLine } from '../../src/deployments/domain/types.ts'
import type { Provisioner, ProvisioningRequest, ProvisioningResult } from '../../src/deployments/provisioner.ts'

export interface FakeApply {
  readonly request: ProvisioningRequest
  readonly signal: AbortSignal
  log(line: DeploymentLogLine): void
  end(result: ProvisioningResult): void
}

const waitForAbort = (signal: AbortSignal): Promise<void> =>
  new Promise(resolve => {
    if (signal.aborted) resolve()
    signal.addEventListener('abort', () => resolve())
  })

export const applied = (address = '192.0.2.1', outputs: object = {}): ProvisioningResult => ({
  kind: 'applied',
  outputs: { load_balancer_ip: address, ...outputs },
})

/** A provisioner whose applies the test ends. A signal stops an apply. */
export class FakeProvisioner implements Provisioner {
  readonly applies: FakeApply[] = []
  readonly cleanedUp: string[] = []
  missing: string | null = null
  /** The result of every apply; null if the test ends each one. */
  result: ProvisioningResult | null = null
  /** Whether an apply continues after it was stopped. */
  ignoresStop = false
  maxConcurrent = 0
  #concurrent = 0

  async preflight(): Promise<string | null> {
    return this.missing
  }

  async apply(
    request: ProvisioningRequest,
    log: (line: DeploymentLogLine) => void,
    signal: AbortSignal,
  ): Promise<ProvisioningResult> {
    this.#concurrent += 1
    this.maxConcurrent = Math.max(this.maxConcurrent, this.#concurrent)
    const { promise, resolve } = Promise.withResolvers<ProvisioningResult>()
    this.applies.push({ request, signal, log, end: resolve })
    log({ phase: 'apply', level: 'info', message: `applying ${request.stateKey}` })
    if (this.result) resolve(this.result)
    const result = await Promise.race([
      promise,
      ...(this.ignoresStop ? [] : [waitForAbort(signal).then((): ProvisioningResult => ({ kind: 'stopped' }))]),
    ])
    this.#concurrent -= 1
    return result
  }

  async cleanUp(id: string): Promise<void> {
    this.cleanedUp.push(id)
  }
}

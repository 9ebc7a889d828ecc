import type { Line } from '../../src/deployments/domain/types.ts'
import type { Made, Making, Provisioner } from '../../src/deployments/provisioner.ts'

export interface Begun {
  readonly making: Making
  readonly signal: AbortSignal
  tell(line: Line): void
  end(made: Made): void
}

const isAborted = (signal: AbortSignal): Promise<void> =>
  new Promise(resolve => {
    if (signal.aborted) resolve()
    signal.addEventListener('abort', () => resolve())
  })

export const made = (address = '192.0.2.1', more: object = {}): Made => ({
  kind: 'made',
  outputs: { load_balancer_ip: address, ...more },
})

/** Infrastructure whose makings a test ends as it likes; a signal stops one. */
export class ScriptedInfrastructure implements Provisioner {
  readonly begun: Begun[] = []
  readonly cleared: string[] = []
  missing: string | null = null
  /** What a making comes to; absent: the test ends it. */
  answer: Made | null = null
  /** Whether a making goes on to its end although it is asked to stop. */
  isDeaf = false
  mostAtOnce = 0
  #atOnce = 0

  async lacks(): Promise<string | null> {
    return this.missing
  }

  async make(making: Making, tell: (line: Line) => void, signal: AbortSignal): Promise<Made> {
    this.#atOnce += 1
    this.mostAtOnce = Math.max(this.mostAtOnce, this.#atOnce)
    const { promise, resolve } = Promise.withResolvers<Made>()
    this.begun.push({ making, signal, tell, end: resolve })
    tell({ phase: 'apply', level: 'info', message: `making ${making.stateKey}` })
    if (this.answer) resolve(this.answer)
    const made = await Promise.race([
      promise,
      ...(this.isDeaf ? [] : [isAborted(signal).then((): Made => ({ kind: 'stopped' }))]),
    ])
    this.#atOnce -= 1
    return made
  }

  async clear(id: string): Promise<void> {
    this.cleared.push(id)
  }
}

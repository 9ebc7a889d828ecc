import { type LogLine, type NodeProcess, startNode } from '@pool/dev/process'
import type { ServiceSpec } from '../protocol.ts'
import { artifacts } from './artifacts.ts'
import type { Log } from './log.ts'

export interface ServiceProcessOptions {
  readonly kind: ServiceSpec['kind']
  /** The complete environment. After a restart it can name the ports of the first start. */
  readonly env: (last: LogLine | undefined) => NodeJS.ProcessEnv
  readonly log: Log
}

/** A service in a process of its own, which can be killed and started again. */
export class ServiceProcess {
  readonly #options: ServiceProcessOptions
  #process: NodeProcess | undefined
  #ready: LogLine | undefined

  constructor(options: ServiceProcessOptions) {
    this.#options = options
  }

  /** Resolves with the message that says that the service is ready. Rejects with its output if it does not start. */
  async start(): Promise<LogLine> {
    const { kind, env, log } = this.#options
    this.#process = startNode({
      entry: artifacts.entries[kind],
      env: { HOME: process.env.HOME, TMPDIR: process.env.TMPDIR, ...env(this.#ready) },
      onLine: log.add,
      // The test chooses the log level.
      readyFrom: 'ipc',
    })
    this.#ready = await this.#process.ready
    return this.#ready
  }

  async kill(): Promise<void> {
    await this.#process?.kill()
  }

  /** Stops it in order. */
  async stop(): Promise<void> {
    await this.#process?.stop()
  }
}

/** A port in the message of a service that is ready. */
export const readPort = (ready: LogLine, field: string): number => {
  const value = ready[field]
  if (typeof value !== 'number') throw new Error(`the service is ready without ${field}`)
  return value
}

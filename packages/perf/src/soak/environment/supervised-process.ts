import { type NodeProcess, startNode } from '@pool/dev/process'

export interface SupervisedProcessOptions {
  readonly entry: string
  readonly env: NodeJS.ProcessEnv
  readonly onLine: (line: string) => void
  readonly onUnexpectedExit: (lastLines: string) => void
  /** Disposal terminates the process instead of killing it: a killed one would leave children that still write files. */
  readonly stopGracefully: boolean
}

/** A Node process that faults stop and start again with the same environment. */
export class SupervisedProcess implements AsyncDisposable {
  readonly #options: SupervisedProcessOptions
  #running: NodeProcess | undefined
  #isDisposed = false

  constructor(options: SupervisedProcessOptions) {
    this.#options = options
  }

  /** Undefined while it does not run. */
  get running(): NodeProcess | undefined {
    return this.#running
  }

  async start(): Promise<void> {
    if (this.#isDisposed) throw new Error('the process is disposed and cannot be started')
    const { entry, env, onLine, onUnexpectedExit } = this.#options
    const starting = startNode({ entry, env, onLine })
    this.#running = starting
    void starting.exited.then(() => {
      if (this.#running === starting && !this.#isDisposed) onUnexpectedExit(starting.lastLines().slice(-3).join(' | '))
    })
    await starting.ready
  }

  kill(): Promise<void> {
    return this.#stop('kill')
  }

  terminate(): Promise<void> {
    return this.#stop('stop')
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isDisposed = true
    await this.#stop(this.#options.stopGracefully ? 'stop' : 'kill').catch(() => {})
  }

  async #stop(method: 'kill' | 'stop'): Promise<void> {
    const stopping = this.#running
    this.#running = undefined
    if (!stopping) return
    // A frozen process does not handle SIGTERM.
    if (stopping.pid > 0) process.kill(stopping.pid, 'SIGCONT')
    await stopping[method]()
  }
}

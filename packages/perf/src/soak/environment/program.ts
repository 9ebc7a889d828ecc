import { type NodeProcess, startNode } from '@pool/dev-server/process'

/** A Node program that is ended and started again, on one port. */
export interface Program extends AsyncDisposable {
  /** Undefined while it does not run. */
  readonly running: NodeProcess | undefined
  readonly start: () => Promise<void>
  readonly kill: () => Promise<void>
  readonly terminate: () => Promise<void>
}

export interface ProgramOptions {
  readonly entry: string
  readonly env: () => NodeJS.ProcessEnv
  readonly onLine: (line: string) => void
  /** It ended, and nobody here had ended it. */
  readonly onEnded: (lastLines: string) => void
  /** It leaves something behind that writes on, unless it is stopped in order. */
  readonly endsInOrder: boolean
}

export const createProgram = ({ entry, env, onLine, onEnded, endsInOrder }: ProgramOptions): Program => {
  let running: NodeProcess | undefined
  let isClosed = false
  const end = async (how: 'kill' | 'stop') => {
    const ending = running
    running = undefined
    if (!ending) return
    // One that is frozen does not see a signal that it could answer.
    if (ending.pid > 0) process.kill(ending.pid, 'SIGCONT')
    await ending[how]()
  }
  return {
    get running() {
      return running
    },
    async start() {
      if (isClosed) throw new Error('it is over')
      const starting = startNode({ entry, env: env(), onLine })
      running = starting
      void starting.exited.then(() => {
        if (running === starting && !isClosed) onEnded(starting.lastLines().slice(-3).join(' | '))
      })
      await starting.ready
    },
    kill: () => end('kill'),
    terminate: () => end('stop'),
    async [Symbol.asyncDispose]() {
      isClosed = true
      await end(endsInOrder ? 'stop' : 'kill').catch(() => {})
    },
  }
}

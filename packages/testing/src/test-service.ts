import { rejectInvalidFault } from './fault-request.ts'
import type { HostClient } from './host-client.ts'
import type { FaultKind, RequestFilter } from './protocol.ts'

/** A fault that a test has requested. */
export interface Fault {
  /**
   * Resolves when the fault has affected a request for the first time. Rejects if the fault is cancelled or the service stops
   * before.
   */
  occurred(): Promise<void>
  /** Ends the fault. A fault of one request also ends when it has occurred. */
  cancel(): Promise<void>
}

/** The clock by which a service decides. It runs at the speed of the machine's clock. */
export interface TestClock {
  /** What the clock shows. */
  now(): Promise<Date>
  /**
   * Moves the clock. When it resolves, no request that starts later is decided by the time before.
   *
   * @param ms Milliseconds, positive for the future. The witness accepts a negative number too.
   * @throws {RangeError} if the clock would leave the years 2000 to 2200; it has then not moved.
   */
  advance(ms: number): Promise<void>
}

/** A running service. Requests to it go through a proxy that applies the faults. */
export interface TestService extends AsyncDisposable {
  /** `http://127.0.0.1:PORT`, without a slash at the end. It stays the same when the service restarts. */
  readonly url: string
  readonly clock: TestClock
  /** The next request that matches does not reach the service; its connection is reset. */
  dropNextRequest(filter?: RequestFilter): Promise<Fault>
  /** The service processes the next request that matches, and its response is lost; the connection is reset. */
  dropNextResponse(filter?: RequestFilter): Promise<Fault>
  /** Each response to a request that matches arrives `ms` milliseconds later, until `cancel()`. */
  delay(ms: number, filter?: RequestFilter): Promise<Fault>
  /**
   * No request that matches reaches the service, and no response to one reaches its client, until `cancel()`. Connections stay
   * open and silent meanwhile, and `cancel()` resets them.
   */
  partition(filter?: RequestFilter): Promise<Fault>
  /**
   * The service is killed (SIGKILL) when it has made the next write that matches: a PUT, POST, PATCH or DELETE that it accepts
   * with a status below 400. The write is durable, and its response is lost. The service then restarts by itself.
   * `occurred()` resolves when it serves requests again.
   */
  killAfterWrite(filter?: RequestFilter): Promise<Fault>
  /** Kills the service (SIGKILL) and starts it again on the same data. Resolves when it serves requests again. */
  kill(): Promise<void>
  /** The last lines of the log of the service, oldest first. */
  readLog(): Promise<readonly string[]>
  /** Stops the service and removes its data. The same as the end of `await using`. A second call does nothing. */
  stop(): Promise<void>
}

export const createTestService = (url: string, { call, waitForExit }: HostClient): TestService => {
  const addFault = async (kind: FaultKind, filter: RequestFilter = {}, { ms } = { ms: 0 }): Promise<Fault> => {
    rejectInvalidFault({ kind, filter, ms })
    const fault = await call('addFault', { kind, filter, ms })
    return { occurred: () => call('awaitFault', fault), cancel: () => call('cancelFault', fault) }
  }
  let stopping: Promise<void> | undefined
  const stop = () => {
    stopping ??= call('stop')
      // The host has ended already.
      .catch(() => {})
      .then(waitForExit)
    return stopping
  }
  return {
    url,
    clock: {
      now: async () => new Date(await call('readClock')),
      advance: async ms => {
        if (typeof ms !== 'number') throw new TypeError('advance takes a number of milliseconds.')
        await call('moveClock', ms)
      },
    },
    dropNextRequest: filter => addFault('drop-request', filter),
    dropNextResponse: filter => addFault('drop-response', filter),
    delay: (ms, filter) => addFault('delay', filter, { ms }),
    partition: filter => addFault('partition', filter),
    killAfterWrite: filter => addFault('kill-after-write', filter),
    kill: () => call('kill'),
    readLog: () => call('readLog'),
    stop,
    [Symbol.asyncDispose]: stop,
  }
}

import type { Answer } from './answer.ts'
import type { Caller } from './closed-loop.ts'
import { openConnection, type Request } from './connection.ts'

/** Callers for one run; `close` when it is over. */
export interface Crew {
  readonly callers: readonly Caller[]
  close(): void
}

/** One of the things that are compared. */
export interface Subject {
  readonly name: string
  /** Called before each run, outside of what is timed. */
  readonly prepare?: () => Promise<void>
  readonly open: (callers: number) => Promise<Crew>
  /** Counters that only rise. How far they rose in a run is reported for each of its operations. */
  readonly counters?: () => Promise<Readonly<Record<string, number>>>
}

export interface Task {
  readonly request: Request
  /** What is wrong with the answer; null: nothing. */
  readonly faultOf: (answer: Answer) => string | null
}

const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error))

export const faultless = (done: Promise<string | null>): Promise<string | null> => done.catch(messageOf)

/**
 * A crew over HTTP: a connection for each caller; `next` makes every request anew for the caller of that number, or says
 * that there is none left.
 */
export const openHttpCrew = async (
  port: number,
  callers: number,
  next: (caller: number) => Task | undefined,
): Promise<Crew> => {
  const connections = await Promise.all(Array.from({ length: callers }, () => openConnection(port)))
  return {
    callers: connections.map((connection, caller) => () => {
      const task = next(caller)
      return task && faultless(connection.send(task.request).then(task.faultOf))
    }),
    close: () => {
      for (const connection of connections) connection.close()
    },
  }
}

/** A crew in this process, all callers on what `call` shares. */
export const localCrew = (callers: number, call: () => Promise<string | null> | undefined): Crew => ({
  callers: Array.from({ length: callers }, () => () => {
    const done = call()
    return done && faultless(done)
  }),
  close: () => {},
})

/** The statuses that say that the operation was done. */
export const oneOf =
  (...statuses: readonly number[]) =>
  ({ status, body }: Answer): string | null =>
    statuses.includes(status) ? null : `status ${status}: ${body.slice(0, 120)}`

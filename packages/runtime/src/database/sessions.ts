import { isReadOnlyCode } from './errors.ts'

/** The driver ends a session after this event, when it has completed the statements that were sent. */
export const EXPIRE = 'expire'
/** The driver emits it with the SQLSTATE of each error. */
const SQL_STATE = 'sqlstate'

/** The socket emits it with the time of a write that the server has not answered for too long. Then the socket is closed. */
export const SILENT = 'silent'
/** The socket closes after this event, unless it waits for an answer. */
export const DISTRUST = 'distrust'

/** A socket of the driver, which listens to EXPIRE and DISTRUST, and emits SQL_STATE and SILENT. */
export interface SessionSocket {
  emit(event: string): boolean
  on(event: typeof SQL_STATE, listener: (code: string) => void): unknown
  on(event: typeof SILENT, listener: (since: number) => void): unknown
  on(event: 'data' | 'close', listener: () => void): unknown
}

/** Milliseconds of the monotonic clock. */
interface Session {
  readonly openedAt: number
  receivedAt: number
}

/** While a database rejects writes, no session is replaced more often. */
const MIN_AGE_MS = 1_000

export type Sessions = ReturnType<typeof createSessions>

/**
 * The open sessions of one or more pools.
 *
 * A session can stay read-only after its database accepts writes again: a default of the database or the role applies when a
 * session begins, and behind one address another server may have become the primary. Once one session reports it, all older
 * ones are replaced.
 *
 * A server that vanished closes no connection. An idle connection to it looks sound, and its next statement waits in vain.
 * Once one session was silent for too long, all idle ones that have received nothing since then are closed.
 */
export const createSessions = (now: () => number) => {
  const open = new Map<SessionSocket, Session>()
  let silences = 0
  const expireOlderThan = (ageMs: number): void => {
    for (const [socket, { openedAt }] of open) if (now() - openedAt >= ageMs) socket.emit(EXPIRE)
  }
  return {
    /** Adds the socket of a session that can be used. */
    add(socket: SessionSocket): void {
      const session: Session = { openedAt: now(), receivedAt: now() }
      open.set(socket, session)
      socket.on('close', () => open.delete(socket))
      socket.on('data', () => {
        session.receivedAt = now()
      })
      socket.on(SQL_STATE, code => {
        if (isReadOnlyCode(code)) expireOlderThan(MIN_AGE_MS)
      })
      socket.on(SILENT, since => {
        silences += 1
        for (const [other, { receivedAt }] of open) if (receivedAt < since) other.emit(DISTRUST)
      })
    },
    /** Replaces all sessions. */
    expire(): void {
      expireOlderThan(0)
    },
    /** How many sessions were silent for too long. While it stays the same, an idle connection can be trusted. */
    get silences(): number {
      return silences
    },
  }
}

import { isReadOnlyCode } from './errors.ts'

/** The driver ends a session after this event, when it has completed the statements that were sent. */
const EXPIRE = 'expire'
/** The driver emits it with the SQLSTATE of each error. */
const SQL_STATE = 'sqlstate'

/** A socket of the driver, which listens to EXPIRE and emits SQL_STATE. */
export interface SessionSocket {
  emit(event: string): boolean
  on(event: string, listener: (argument: string) => void): unknown
}

/** While a database rejects writes, no session is replaced more often. */
const MIN_AGE_MS = 1_000

export type Sessions = ReturnType<typeof createSessions>

/**
 * The open sessions of one or more pools. A session can stay read-only after its database accepts writes again: a default
 * of the database or the role applies when a session begins, and behind one address another server may have become the
 * primary. Once one session reports it, all older ones are replaced.
 */
export const createSessions = (now: () => number) => {
  const openedAt = new Map<SessionSocket, number>()
  const expireOlderThan = (ageMs: number): void => {
    for (const [socket, at] of openedAt) if (now() - at >= ageMs) socket.emit(EXPIRE)
  }
  return {
    /** Adds the socket of a session that can be used. */
    add(socket: SessionSocket): void {
      openedAt.set(socket, now())
      socket.on('close', () => openedAt.delete(socket))
      socket.on(SQL_STATE, code => {
        if (isReadOnlyCode(code)) expireOlderThan(MIN_AGE_MS)
      })
    },
    /** Replaces all sessions. */
    expire(): void {
      expireOlderThan(0)
    },
  }
}

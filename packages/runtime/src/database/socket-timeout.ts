import type { Socket } from 'node:net'
import { DISTRUST, EXPIRE, SILENT } from './sessions.ts'

/** After the driver has ended a connection, its server needs only to close its side. */
const MAX_CLOSE_MS = 1_000

/**
 * Destroys the socket if nothing arrives within `timeoutMs` of a write, after it has emitted SILENT. A peer that vanished,
 * such as the old primary of a failover, sends no reset. Without this timeout, statements would be sent to it until the kernel
 * stops retransmitting, about 15 minutes later. A connection that the driver ends is destroyed after a second: a server that
 * hangs never closes its side, and an open socket keeps the process alive.
 */
export const destroyOnSilence = (socket: Socket, timeoutMs: number, now: () => number): void => {
  let timer: NodeJS.Timeout | undefined
  let maxCloseMs = MAX_CLOSE_MS
  const stopTimer = () => {
    clearTimeout(timer)
    timer = undefined
  }
  const startTimer = () => {
    if (timer) return
    const since = now()
    timer = setTimeout(() => {
      socket.emit(SILENT, since)
      socket.destroy(Object.assign(new Error(`no answer for ${timeoutMs} ms`), { code: 'ETIMEDOUT' }))
    }, timeoutMs).unref()
  }
  const write = socket.write.bind(socket) as (...args: unknown[]) => boolean
  socket.write = (...args: unknown[]) => {
    startTimer()
    return write(...args)
  }
  const end = socket.end.bind(socket) as (...args: unknown[]) => Socket
  socket.end = (...args: unknown[]) => {
    setTimeout(() => socket.destroy(), maxCloseMs).unref()
    return end(...args)
  }
  socket.on(DISTRUST, () => {
    if (timer) return
    maxCloseMs = 0
    socket.emit(EXPIRE)
  })
  socket.on('data', stopTimer)
  socket.on('close', stopTimer)
}

import type { Socket } from 'node:net'

/**
 * Destroys the socket if nothing arrives within `timeoutMs` of a write. A peer that vanished, such as the old primary of a
 * failover, sends no reset. Without this timeout, statements would be sent to it until the kernel stops retransmitting,
 * about 15 minutes later.
 */
export const destroyOnSilence = (socket: Socket, timeoutMs: number): void => {
  let timer: NodeJS.Timeout | undefined
  const stopTimer = () => {
    clearTimeout(timer)
    timer = undefined
  }
  const startTimer = () => {
    timer ??= setTimeout(() => {
      socket.destroy(Object.assign(new Error(`no answer for ${timeoutMs} ms`), { code: 'ETIMEDOUT' }))
    }, timeoutMs).unref()
  }
  const write = socket.write.bind(socket) as (...args: unknown[]) => boolean
  socket.write = (...args: unknown[]) => {
    startTimer()
    return write(...args)
  }
  // The peer closes its side next. Until then the socket would keep the process alive.
  const end = socket.end.bind(socket) as (...args: unknown[]) => Socket
  socket.end = (...args: unknown[]) => {
    startTimer()
    return end(...args)
  }
  socket.on('data', stopTimer)
  socket.on('close', stopTimer)
}

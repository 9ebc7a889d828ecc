import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'
import { setImmediate as nextLoopIteration } from 'node:timers/promises'
import { startTcpProxy, type TcpProxy } from '@pool/test-kit/tcp-proxy.ts'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'

let proxy: TcpProxy
const echo = createServer(socket => socket.on('error', () => {}).pipe(socket))
beforeEach(async () => {
  echo.listen(0, '127.0.0.1')
  await once(echo, 'listening')
  const address = echo.address()
  proxy = await startTcpProxy(typeof address === 'object' && address ? address.port : 0)
})
afterEach(async () => {
  await proxy.close()
  echo.close()
})

/** Half of it is longer than the way to the proxy takes on a busy machine. */
const DELAY_MS = 200

const open = async (): Promise<Socket> => {
  const socket = connect(proxy.port, '127.0.0.1').setEncoding('utf8')
  socket.on('error', () => {})
  await once(socket, 'connect')
  return socket
}
/** `once` from node:events would reject on the reset. */
const waitForClose = (socket: Socket): Promise<void> => new Promise(resolve => socket.once('close', () => resolve()))
const readText = async (socket: Socket): Promise<string> => String((await once(socket, 'data'))[0])

describe('the TCP proxy', () => {
  it('delays data and preserves its order when the delay ends', async () => {
    const socket = await open()
    socket.write('hello')
    await readText(socket)
    proxy.delay(DELAY_MS)
    const started = performance.now()
    socket.write('slow')
    // The proxy must read the data before the delay ends. Each iteration of the event loop polls the sockets.
    while (performance.now() - started < DELAY_MS / 2) await nextLoopIteration()
    proxy.delay(0)
    socket.write('fast')
    let text = ''
    while (text.length < 8) text += await readText(socket)
    expect(text).toBe('slowfast')
    expect(performance.now() - started).toBeGreaterThanOrEqual(DELAY_MS - 5)
    socket.write('again')
    expect(await readText(socket)).toBe('again')
  })

  it('responds instead of the server and closes the connection', async () => {
    const [idle, socket] = [await open(), await open()]
    proxy.respondWith('no')
    socket.write('hello')
    const ended = once(socket, 'end')
    expect(await readText(socket)).toBe('no')
    await ended
    proxy.respondWith(undefined)
    idle.write('hello')
    expect(await readText(idle)).toBe('hello')
  })

  it('redirects new connections', async () => {
    const other = createServer(socket => void socket.end('other')).listen(0, '127.0.0.1')
    await once(other, 'listening')
    const socket = await open()
    proxy.redirect(Object(other.address()).port)
    socket.write('same')
    expect(await readText(socket)).toBe('same')
    expect(await readText(await open())).toBe('other')
    other.close()
  })

  it('refuses new connections and resets open ones', async () => {
    const socket = await open()
    socket.write('hello')
    await readText(socket)
    const reset = waitForClose(socket)
    proxy.refuse(true)
    await reset
    const rejectedSocket = connect(proxy.port, '127.0.0.1').on('error', () => {})
    await waitForClose(rejectedSocket)
    proxy.refuse(false)
    const later = await open()
    later.write('back')
    expect(await readText(later)).toBe('back')
  })
})

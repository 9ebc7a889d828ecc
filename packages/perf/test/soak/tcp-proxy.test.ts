import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'
import { setImmediate as turn } from 'node:timers/promises'
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

const open = async (): Promise<Socket> => {
  const socket = connect(proxy.port, '127.0.0.1').setEncoding('utf8')
  socket.on('error', () => {})
  await once(socket, 'connect')
  return socket
}
/** `once` would take the reset for a failure. */
const closed = (socket: Socket): Promise<void> => new Promise(resolve => socket.once('close', () => resolve()))
const said = async (socket: Socket): Promise<string> => String((await once(socket, 'data'))[0])

describe('what a link can be made to do', () => {
  it('carries things later, and in order when it is fast again', async () => {
    const socket = await open()
    socket.write('hello')
    await said(socket)
    proxy.delay(40)
    const started = performance.now()
    socket.write('slow')
    // The proxy has it before it is fast again: each turn of the loop reads what has come.
    for (let turns = 0; turns < 20; turns += 1) await turn()
    proxy.delay(0)
    socket.write('fast')
    let text = ''
    while (text.length < 8) text += await said(socket)
    expect(text).toBe('slowfast')
    expect(performance.now() - started).toBeGreaterThanOrEqual(35)
    socket.write('again')
    expect(await said(socket)).toBe('again')
  })

  it('answers in place of the server, and ends the connection', async () => {
    const [idle, socket] = [await open(), await open()]
    proxy.respondWith('no')
    socket.write('hello')
    const ended = once(socket, 'end')
    expect(await said(socket)).toBe('no')
    await ended
    proxy.respondWith(undefined)
    idle.write('hello')
    expect(await said(idle)).toBe('hello')
  })

  it('refuses new connections and resets those that there are', async () => {
    const socket = await open()
    socket.write('hello')
    await said(socket)
    const reset = closed(socket)
    proxy.refuse(true)
    await reset
    const refused = connect(proxy.port, '127.0.0.1').on('error', () => {})
    await closed(refused)
    proxy.refuse(false)
    const later = await open()
    later.write('back')
    expect(await said(later)).toBe('back')
  })
})

import { createSocket } from 'node:dgram'
import { createServer } from 'node:net'
import { expect, test } from 'vitest'
import { freePort, isPortTaken } from '../src/ports.ts'

test('a free port is one that can be listened on', async () => {
  const port = await freePort()
  expect(await isPortTaken(port)).toBe(false)
  expect(await isPortTaken(port, true)).toBe(false)
})

test.each(['127.0.0.1', '0.0.0.0', '::'])('a TCP listener on %s takes its port, for TCP alone', async host => {
  const server = createServer()
  const port = await freePort()
  await new Promise<void>(resolve => server.listen(port, host, resolve))
  expect(await isPortTaken(port)).toBe(true)
  expect(await isPortTaken(port, true)).toBe(false)
  await new Promise(resolve => server.close(resolve))
  expect(await isPortTaken(port)).toBe(false)
})

test.each(['127.0.0.1', '0.0.0.0'])('a UDP socket on %s takes its port, for UDP alone', async host => {
  const socket = createSocket('udp4')
  // Of the UDP ports that the system would choose, one may be somebody's outgoing TCP connection.
  const port = await freePort()
  await new Promise<void>(resolve => socket.bind(port, host, resolve))
  expect(await isPortTaken(port, true)).toBe(true)
  expect(await isPortTaken(port)).toBe(false)
  await new Promise<void>(resolve => socket.close(resolve))
  expect(await isPortTaken(port, true)).toBe(false)
})

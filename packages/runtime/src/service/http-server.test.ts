import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { until } from '@pool/test-kit/poll.ts'
import { describe, expect, test } from 'vitest'
import { listen, toListenError } from './http-server.ts'

test.each([
  ['EADDRINUSE', /^PORT: port 80 is in use; stop the process that has it, or set another port in PORT \(EADDRINUSE\)$/],
  ['EADDRNOTAVAIL', /^ADDRESS: this machine does not have the address; correct ADDRESS \(EADDRNOTAVAIL\)$/],
  ['EACCES', /^PORT: only root may listen on port 80; set a port from 1024 on in PORT, .*\(EACCES\)$/],
  ['EINVAL', /^PORT: cannot listen on port 80; correct PORT \(EINVAL\)$/],
])('a port or an address that cannot be bound: %s', (code, message) => {
  const error = Object.assign(new Error('listen'), { code })
  const { message: actual } = toListenError(error, { variable: 'PORT', port: 80, addressVariable: 'ADDRESS' })
  expect(actual).toMatch(message)
})

test('a flood of connections beyond the limits keeps no probe of another address out', async () => {
  const none = { total: 0, perClient: 0 }
  const server = await listen({ fetch: () => new Response('live') }, 0, {
    malformedRequestCode: 'malformed-request',
    address: '127.0.0.1',
    limits: { connections: none, unfinishedBytes: none },
    probePaths: ['/livez'],
  })
  let closed = 0
  const open = async (localAddress: string): Promise<Socket> => {
    const socket = connect({ port: server.port, host: '127.0.0.1', localAddress })
    socket.on('error', () => {}).on('close', () => (closed += 1))
    await once(socket, 'connect')
    return socket
  }
  const flood = () => Promise.all(Array.from({ length: 600 }, () => open('127.0.0.2')))
  const first = await flood()
  const clients = [await open('127.0.0.3'), await open('127.0.0.3')]
  const second = await flood()
  await until('the service has accepted all of them', () => closed >= 2 * 600 + clients.length - 256)
  const responses = await Promise.all(
    clients.map(async (client, i) => {
      if (client.destroyed) return 'closed'
      client.write(`GET ${i === 0 ? '/livez' : '/other'} HTTP/1.1\r\nHost: a\r\n\r\n`)
      return String(await once(client, 'data'))
    }),
  )
  expect(responses).toEqual([
    expect.stringMatching(/^HTTP\/1\.1 200 /),
    expect.stringMatching(/^HTTP\/1\.1 503 [\s\S]*\r\nRetry-After: [1-3]\r\n/),
  ])
  for (const socket of [...clients, ...first, ...second]) socket.destroy()
  await server.close(0)
})

describe('connections that arrive together', () => {
  const FLOOD = 300
  let served = 0
  const app = {
    fetch({ url }: Request) {
      if (url.endsWith('/flood')) served += 1
      return new Response(String(served))
    },
  }
  const send = async (port: number, localAddress: string, path: string): Promise<Socket> => {
    const socket = connect({ port, host: '127.0.0.1', localAddress })
    socket.on('error', () => {})
    await once(socket, 'connect')
    socket.write(`GET ${path} HTTP/1.1\r\nHost: a\r\n\r\n`)
    return socket
  }

  test('those of another client are not read after the flood before them', async () => {
    const server = await listen(app, 0, { malformedRequestCode: 'malformed-request', address: '127.0.0.1' })
    const flood = Promise.all(Array.from({ length: FLOOD }, () => send(server.port, '127.0.0.2', '/flood')))
    const probe = await send(server.port, '127.0.0.3', '/probe')
    const [response] = await once(probe, 'data')
    const servedBefore = Number(String(response).split('\r\n\r\n')[1])
    expect(servedBefore).toBeLessThan(FLOOD / 2)
    await until('the flood is served', () => served === FLOOD)
    for (const socket of [probe, ...(await flood)]) socket.destroy()
    await server.close(0)
  })

  test('those that are reset before they are read end nothing but themselves', async () => {
    const server = await listen(app, 0, { malformedRequestCode: 'malformed-request', address: '127.0.0.1' })
    const flood = Array.from({ length: FLOOD }, () => send(server.port, '127.0.0.2', '/reset'))
    for (const socket of await Promise.all(flood)) socket.resetAndDestroy()
    const probe = await send(server.port, '127.0.0.2', '/probe')
    expect(String((await once(probe, 'data'))[0])).toMatch(/^HTTP\/1\.1 200 /)
    probe.destroy()
    await server.close(0)
  })
})

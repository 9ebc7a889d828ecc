import { connect, type Socket } from 'node:net'
import { encodeRequest, HttpConnection } from '@pool/test-kit/http1.ts'
import { createMemoryCgroup, missingMemoryCgroup } from '@pool/test-kit/memory-cgroup.ts'
import { until } from '@pool/test-kit/poll.ts'
import { type Api, startApi } from '@pool/test-kit/services.ts'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { poolPath } from '../support/service.ts'

const TOKEN = 'operator-token-of-this-test'
/** The limit of the API in infra/chart/values.yaml. */
const LIMIT_MIB = 384
const CONNECTIONS = 4_000

let database: TestDatabase
beforeAll(async () => {
  database = await createTestDatabase({ connections: 2 })
})
afterAll(() => database.drop())

/** Opens connections from many addresses of this machine, or from one, which send `bytes` and read nothing. */
const attack = (port: number, bytes: Buffer, addresses: number): Disposable => {
  const sockets: Socket[] = []
  for (let i = 0; i < CONNECTIONS; i += 1) {
    const socket = connect({ port, host: '127.0.0.1', localAddress: `127.0.1.${1 + (i % addresses)}` })
    // The server may end it at any time.
    socket.on('error', () => {})
    socket.pause()
    socket.write(bytes)
    sockets.push(socket)
  }
  return {
    [Symbol.dispose]: () => {
      for (const s of sockets) s.destroy()
    },
  }
}

/** On a connection of its own, as a probe of Kubernetes. */
const isFast = async (port: number, path: string, headers: readonly string[] = []): Promise<boolean> => {
  using connection = await HttpConnection.open(port)
  const response = await connection.send(encodeRequest({ path, headers }), { timeoutMs: 1_000 }).catch(() => null)
  return response?.status === 200
}

const reserve = (length: number, sent: number): Buffer =>
  Buffer.concat([
    encodeRequest({ method: 'POST', path: `${poolPath}/reserve`, headers: [`Content-Length: ${length}`] }),
    Buffer.alloc(sent, ' '),
  ])
const HALF_BODY = reserve(65_500, 65_000)
const HALF_HEAD = Buffer.from(`GET /livez HTTP/1.1\r\nHost: localhost\r\nX-Long: ${'x'.repeat(15_000)}`)
const UNREAD_BODY = encodeRequest({ path: '/docs/swagger-ui-bundle.js' })
const NO_BODY_NEEDED = encodeRequest({ method: 'POST', path: '/nowhere', headers: ['Content-Length: 65500'] })

describe.skipIf(missingMemoryCgroup)(`in a container with ${LIMIT_MIB} MiB ${missingMemoryCgroup ?? ''}`, () => {
  test.for([
    ['half-sent bodies from one address', HALF_BODY, 1],
    ['half-sent bodies from many addresses', HALF_BODY, 100],
    ['half-sent bodies of unknown routes', Buffer.concat([NO_BODY_NEEDED, Buffer.alloc(65_000)]), 100],
    ['half-sent heads', HALF_HEAD, 100],
    ['slow readers of a large file', UNREAD_BODY, 100],
  ] as const)('4,000 %s kill nothing, keep nobody out, and pass', async ([, bytes, addresses], { annotate }) => {
    using cgroup = createMemoryCgroup('pool-api', LIMIT_MIB)
    await using api: Api = await cgroup.run(() => startApi(database.url, { PDM_OPERATOR_TOKENS: TOKEN }))
    const operatorPort = Number(new URL(api.operatorUrl ?? '').port)
    const authorization = [`Authorization: Bearer ${TOKEN}`]
    {
      using _ = attack(api.port, bytes, addresses)
      for (let round = 0; round < 5; round += 1) {
        await until('the probe responds within 1 s', () => isFast(api.port, '/livez'))
        await until(
          'the operators list responds within 1 s',
          () => isFast(operatorPort, `${poolPath}/list`, authorization),
          15_000,
        )
      }
      await annotate(`peak ${cgroup.peakMib} MiB`)
    }
    await until('clients are served again', async () => {
      const response = await api.call('GET', `${poolPath}/check?sub=acme`).catch(() => null)
      return response?.status === 200
    })
    expect(cgroup.kills).toBe(0)
    expect(await api.process.stop()).toEqual({ code: 0, signal: null })
  })
})

import { Hono } from 'hono'
import { expect, test } from 'vitest'
import type { RequestLogEntry } from '../observability/domain/observer.ts'
import { handleRequests } from './handle-requests.ts'
import { type HttpEnv, sendError } from './request.ts'

const ID = '0a000000-0000-4000-8000-00000000000b'

/** `respond` ends the requests to /slow. */
const createTestApp = () => {
  const entries: RequestLogEntry[] = []
  const slow = Promise.withResolvers<void>()
  const routes = new Hono<HttpEnv>()
    .get('/slow', async c => {
      await slow.promise
      c.env.outcome = 'found'
      return c.text(c.env.requestId)
    })
    .get('/names/:name', c => {
      c.env.outcome = 'found'
      return c.text(c.env.address ?? 'unknown')
    })
    .use('/guarded/*', async c => sendError(c, { kind: 'unauthorized' }))
    .get('/guarded/:name', c => c.text('never'))
    .get('/api/v1/deployments/:id', c => c.text(''))
    .post('/api/v1/deployments', c => {
      c.env.deployment = ID
      return c.text('', 201)
    })
  const app = handleRequests(routes, {
    listener: 'in-cluster',
    clientAddress: (_, header) => header('x-forwarded-for') ?? null,
    observer: { onRequest: entry => entries.push(entry), onShortKey: () => {} },
    tracer: null,
    limitWrites: null,
    browsers: { allowedOrigins: [], allowedHosts: [], loopbackHostsOnly: false },
  })
  const send = (path: string, init?: RequestInit) => app.fetch(new Request(`http://localhost${path}`, init), {})
  return { send, entries, respond: slow.resolve }
}

const foreign = { Origin: 'https://other.example' }

test.each<
  readonly [
    request: string,
    headers: Record<string, string>,
    entry: Pick<RequestLogEntry, 'route' | 'status' | 'outcome'> & { readonly deployment?: string },
  ]
>([
  ['GET /names/acme', {}, { route: '/names/:name', status: 200, outcome: 'found' }],
  ['HEAD /names/acme', {}, { route: '/names/:name', status: 200, outcome: 'found' }],
  ['GET /nowhere', {}, { route: 'none', status: 404, outcome: '' }],
  ['DELETE /names/acme', {}, { route: 'none', status: 404, outcome: '' }],
  ['GET /guarded/acme', {}, { route: '/guarded/:name', status: 401, outcome: 'unauthorized' }],
  ['GET /guarded/a/b', {}, { route: 'none', status: 401, outcome: 'unauthorized' }],
  ['GET /names/acme', foreign, { route: '/names/:name', status: 403, outcome: 'forbidden' }],
  ['HEAD /names/acme', foreign, { route: '/names/:name', status: 403, outcome: 'forbidden' }],
  ['GET /nowhere', foreign, { route: 'none', status: 403, outcome: 'forbidden' }],
  [
    `GET /api/v1/deployments/${ID}?a=b`,
    {},
    { route: '/api/v1/deployments/:id', status: 200, outcome: '', deployment: ID },
  ],
  ['POST /api/v1/deployments', {}, { route: '/api/v1/deployments', status: 201, outcome: '', deployment: ID }],
])('%s %j is reported as %j', async (request, headers, entry) => {
  const { send, entries } = createTestApp()
  const [method = '', path = ''] = request.split(' ')
  const response = await send(path, { method, headers })
  expect(response.status).toBe(entry.status)
  expect(entries).toEqual([
    {
      deployment: undefined,
      ...entry,
      method,
      listener: 'in-cluster',
      address: null,
      cause: undefined,
      requestId: response.headers.get('X-Request-Id'),
      seconds: expect.any(Number),
    },
  ])
})

test('a request that waits keeps its own route, id and address', async () => {
  const { send, entries, respond } = createTestApp()
  const waiting = send('/slow', { headers: { 'X-Request-Id': 'first', 'X-Forwarded-For': '192.0.2.1' } })
  await send('/nowhere', { headers: { 'X-Request-Id': 'second', 'X-Forwarded-For': '192.0.2.2' } })
  respond()
  expect(await (await waiting).text()).toBe('first')
  expect(entries.map(({ requestId, route, address }) => [requestId, route, address])).toEqual([
    ['second', 'none', '192.0.2.2'],
    ['first', '/slow', '192.0.2.1'],
  ])
})

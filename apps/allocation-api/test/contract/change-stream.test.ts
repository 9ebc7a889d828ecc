import { parseEvents } from '@pool/test-kit/sse-events.ts'
import { expect, test } from 'vitest'
import { createApp } from '../../src/http/app.ts'
import { createStreamLimiter } from '../../src/http/streams.ts'
import { type ChangeState, formatEventId } from '../../src/operator/domain/change.ts'
import { onBothListeners, sendRequest, unusedDependencies } from '../support/fake-services-app.ts'

const toState = (names: number): ChangeState => ({ names: String(names), zones: '0', deployments: '0', samples: '0' })

/** Follows changes whose state at each poll is the next of `states`, and then the last one. */
const follow = (states: readonly (ChangeState | Error)[], { lastEventId = '', maxStreams = 10 } = {}) => {
  const stopping = new AbortController()
  const left = [...states]
  let polls = 0
  const app = createApp(
    {
      ...unusedDependencies,
      streams: onBothListeners({ changes: createStreamLimiter({ stopping: stopping.signal, maxStreams }) }),
      operatorView: {
        ...unusedDependencies.operatorView,
        readChanges: async () => {
          const state = left.length > 1 ? left.shift() : left[0]
          if (state instanceof Error || state === undefined) throw state
          return state
        },
        sleep: async () => {
          polls += 1
        },
      },
      isUnavailable: () => true,
      observer: { ...unusedDependencies.observer, onRequest: () => {} },
    },
    { listener: 'operator', tokens: null, exposeLists: true },
  )
  const request = () =>
    sendRequest(app, '/api/v1/changes', {
      headers: { Host: 'localhost', ...(lastEventId ? { 'Last-Event-ID': lastEventId } : {}) },
    })
  return { request, stopping, countPolls: () => polls }
}

const readTopics = async (response: Response): Promise<readonly string[][]> =>
  parseEvents(await response.text()).map(({ data }) => JSON.parse(data).topics)

test('each change is one event, and the stream ends after five minutes', async () => {
  const { request, countPolls } = follow([toState(1), toState(1), toState(2), toState(2), toState(3)])
  expect(await readTopics(await request())).toEqual([
    ['names', 'zones', 'deployments', 'samples'],
    ['names'],
    ['names'],
  ])
  expect(countPolls()).toBe(300)
})

test.each([
  ['nothing has changed since its last event', toState(1), []],
  ['names have changed since', toState(0), [['names']]],
  ['a client without a valid id', null, [['names', 'zones', 'deployments', 'samples']]],
])('%s', async (_, known, topics) => {
  const { request } = follow([toState(1)], { lastEventId: known ? formatEventId(known) : 'x' })
  expect(await readTopics(await request())).toEqual(topics)
})

test('comments keep a stream without changes open', async () => {
  const text = await (await follow([toState(1)]).request()).text()
  expect(text.match(/^: idle$/gm)?.length).toBeGreaterThan(15)
})

test('an outage of the database does not end a stream, and 503 is the response during one', async () => {
  const { request } = follow([toState(1), new Error('away'), new Error('away'), toState(2)])
  expect(await readTopics(await request())).toEqual([['names', 'zones', 'deployments', 'samples'], ['names']])
  expect((await follow([new Error('away')]).request()).status).toBe(503)
})

test('the end of the session ends its streams', async () => {
  let hasEnded = false
  const live = { createdAt: new Date(), expiresAt: new Date() }
  const app = createApp(
    {
      ...unusedDependencies,
      streams: onBothListeners({ changes: createStreamLimiter({ sessionCheckMs: 1 }) }),
      sessions: { ...unusedDependencies.sessions, find: async () => (hasEnded ? null : live) },
      operatorView: {
        ...unusedDependencies.operatorView,
        readChanges: async () => toState(1),
        sleep: (_, signal) => new Promise(resolve => signal.addEventListener('abort', () => resolve())),
      },
      observer: { ...unusedDependencies.observer, onRequest: () => {} },
    },
    { listener: 'operator', tokens: ['token'], exposeLists: true },
  )
  const response = await sendRequest(app, '/api/v1/changes', { headers: { Cookie: `pool-session=${'A'.repeat(43)}` } })
  const reader = response.body?.getReader()
  await reader?.read()
  hasEnded = true
  // Without the end of the session, this read would never end.
  for (let part = await reader?.read(); part?.done === false; part = await reader?.read());
  expect(response.status).toBe(200)
})

test('the number of streams is limited, and a stop of the service ends them', async () => {
  const { request, stopping } = follow([toState(1)], { maxStreams: 1 })
  const first = await request()
  const second = await request()
  expect([first.status, second.status, second.headers.get('retry-after')]).toEqual([200, 503, '5'])
  expect(JSON.parse(await second.text()).error).toBe('too-many-readers')
  const reader = first.body?.getReader()
  await reader?.read()
  stopping.abort()
  for (let part = await reader?.read(); part?.done === false; part = await reader?.read());
  expect((await request()).status).toBe(503)
})

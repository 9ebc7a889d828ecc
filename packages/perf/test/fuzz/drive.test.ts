import { once } from 'node:events'
import { createServer } from 'node:http'
import { allocationApiDocument } from '@pool/contract/openapi/allocation-api'
import { expect, test } from 'vitest'
import { drive } from '../../src/fuzz/drive.ts'
import type { FuzzWorkload } from '../../src/fuzz/generate/workload.ts'
import { parseFuzzOptions } from '../../src/fuzz/options.ts'
import { readDocument } from '../../src/fuzz/oracle/document.ts'
import { createMarkPattern } from '../../src/fuzz/oracle/secrets.ts'
import { FuzzStats } from '../../src/fuzz/report/stats.ts'

/** Sends requests to a server that answers each target as `respond` says, and returns what was found. */
const driveAgainst = async (
  workload: FuzzWorkload,
  requests: number,
  respond: (target: string) => [number, object],
) => {
  const server = createServer((request, response) => {
    const [status, body] = respond(request.url ?? '')
    response.writeHead(status, { 'Content-Type': 'application/json', 'X-Request-Id': 'r' }).end(JSON.stringify(body))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const stats = new FuzzStats()
  await drive({
    service: 'planted',
    clients: [{ workload, port: Object(server.address()).port, name: 'client 0' }],
    requests,
    stats,
    deadlineMs: 60_000,
    phase: () => 'up',
    rules: {
      document: readDocument(allocationApiDocument(), { problem: 'Problem' }),
      mark: createMarkPattern('MARKmark'),
      isToken: () => false,
      isFromPlatform: () => false,
      allowedOrigins: null,
    },
    isExplained: () => false,
    onExchange: () => [],
  }).done
  server.close()
  return stats
}

const check = { row: 'checkName', method: 'GET', headers: [] }

test('invalid responses are reported with the requests that showed them', async () => {
  const workload: FuzzWorkload = {
    next: choices => ({
      request: { ...check, target: `/api/v1/pool/pool.test/check?sub=${choices.pick(['a', 'b', 'c'])}` },
      learn: () => {},
    }),
    clone: () => workload,
  }
  const { violations } = await driveAgainst(workload, 60, target => {
    if (target.endsWith('a')) return [500, { error: 'internal-error', requestId: 'r' }]
    return target.endsWith('b') ? [200, { available: 1 }] : [200, { available: true, detail: 'MARKmark' }]
  })
  expect(violations.map(({ what }) => what).toSorted()).toEqual([
    expect.stringMatching(/^200: a body outside its schema/),
    '500 internal-error without a cause',
    'secret: a marked secret',
  ])
  for (const { count } of violations) expect(count).toBeGreaterThan(5)
})

test('a violation is shrunk to the smallest sequence of requests, with its seed and path', async () => {
  // The server fails the check after a write if the name is n20 or a later one.
  let isWritten = false
  const workload: FuzzWorkload = {
    next: choices => {
      const target = choices.chance(0.3) ? '/write' : `/api/v1/pool/pool.test/check?sub=n${choices.below(40)}`
      return { request: { ...check, target }, learn: () => {} }
    },
    clone: () => workload,
  }
  const { violations } = await driveAgainst(workload, 100, target => {
    const isFailing = isWritten && Number(/n(\d+)$/.exec(target)?.[1]) >= 20
    isWritten = target === '/write'
    if (target === '/write') return [404, { error: 'not-found' }]
    return isFailing ? [200, { available: 'yes' }] : [200, { available: true }]
  })
  expect(violations).toHaveLength(1)
  const [violation] = violations
  expect(violation?.counterexample?.where).toMatch(/^client 0, sequence \d+: fast-check seed -?\d+, path "0(:\d+)+"$/)
  expect(violation?.counterexample?.requests.map(text => text.replace(/ HTTP.*/, ''))).toEqual([
    "printf 'GET /write",
    "printf 'GET /api/v1/pool/pool.test/check?sub=n20",
  ])
})

test.each([
  [['--requests', '9'], '--requests must be a whole number from 200'],
  [['--requests=many'], '--requests must be a whole number from 200'],
  [['--seed', 'a b'], '--seed must be'],
  [['--service=dns'], '--service must be api or witness'],
  [['--wrong'], "Unknown option '--wrong'"],
])('%j is rejected', (args, message) => {
  expect(() => parseFuzzOptions(args, 'x')).toThrow(message)
})

test('by default both services receive 240,000 requests with a random seed', () => {
  expect(parseFuzzOptions([], 'x')).toEqual({ requests: 240_000, seed: 'x', services: ['api', 'witness'], json: false })
  expect(parseFuzzOptions(['--service=api', '--requests', '500', '--seed=s', '--json'], 'x')).toEqual({
    requests: 500,
    seed: 's',
    services: ['api'],
    json: true,
  })
})

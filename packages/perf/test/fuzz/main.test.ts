import { once } from 'node:events'
import { createServer } from 'node:http'
import { fileURLToPath } from 'node:url'
import { openApiDocument } from 'allocation-api/src/http/routes/docs.ts'
import { expect, test } from 'vitest'
import { drive } from '../../src/fuzz/drive.ts'
import { parseOptions } from '../../src/fuzz/options.ts'
import { readDocument } from '../../src/fuzz/oracle/document.ts'
import { markPattern } from '../../src/fuzz/oracle/secrets.ts'
import { createTally } from '../../src/fuzz/report/stats.ts'
import { runCommand } from '../shared/run-command.ts'

const main = fileURLToPath(new URL('../../src/fuzz/main.ts', import.meta.url))

const fuzz = (args: readonly string[], interruptAt?: RegExp) => runCommand(main, args, interruptAt)

test('a small run of both services finds nothing, says what it did, and leaves nothing behind', async () => {
  const { code, stdout, stderr, left } = await fuzz(['--requests=2400', '--seed=test', '--json'])
  expect({ code, faults: JSON.parse(stdout || '{}').faults }, stderr).toEqual({ code: 0, faults: [] })
  const { rows, figures, clean } = JSON.parse(stdout)
  expect(clean).toBe(true)
  const sum = (service: string, of: (row: { requests: number; classes: number[] }) => number) =>
    rows
      .filter((row: { service: string }) => row.service === service)
      .reduce((total: number, row: { requests: number; classes: number[] }) => total + of(row), 0)
  for (const service of ['api', 'witness']) {
    expect(sum(service, row => row.requests)).toBeGreaterThanOrEqual(1_200)
    expect(sum(service, row => row.classes[2] ?? 0)).toBeGreaterThan(200)
    expect(sum(service, row => row.classes[4] ?? 0)).toBeGreaterThan(200)
  }
  expect(figures.map(({ logLines }: { logLines: number }) => logLines > 500)).toEqual([true, true])
  expect(left).toEqual([])
})

test('is gone with all it started on Ctrl-C', async () => {
  const { code, left } = await fuzz(['--service', 'api'], /240000 requests/)
  expect(code).toBe(130)
  expect(left).toEqual([])
})

test('a service that answers wrongly is told with the request that showed it', async () => {
  const answers: readonly (readonly [number, object])[] = [
    [500, { error: 'internal-error', requestId: 'r' }],
    [200, { available: 1 }],
    [200, { available: true, detail: 'MARKmark' }],
  ]
  let asked = 0
  const server = createServer((_, response) => {
    const [status, body] = answers[asked++ % answers.length] ?? [500, {}]
    response.writeHead(status, { 'Content-Type': 'application/json', 'X-Request-Id': 'r' }).end(JSON.stringify(body))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  const tally = createTally()
  const request = { row: 'checkName', method: 'GET', target: '/api/v1/pool/pool.test/check', headers: [] }
  await drive({
    service: 'planted',
    clients: [{ lane: { next: () => ({ request, learn: () => {} }) }, port: Object(address).port, name: 'client 0' }],
    requests: 6,
    tally,
    deadlineMs: 2_000,
    phase: () => 'up',
    rules: {
      document: readDocument(openApiDocument(), { problem: 'Problem' }),
      mark: markPattern('MARKmark'),
      isToken: () => false,
      isPlatforms: () => false,
    },
    isExplained: () => false,
    onExchange: () => [],
  }).done
  server.close()
  expect(tally.faults.map(({ what, count, where }) => [what, count, where])).toEqual([
    ['500 internal-error that nothing explains', 2, 'client 0, request 1'],
    ['500: a status that is not documented', 2, 'client 0, request 1'],
    [expect.stringMatching(/^200: a body outside its schema/), 2, 'client 0, request 2'],
    ['secret: a marked secret', 2, 'client 0, request 3'],
  ])
  expect(tally.faults[0]?.request).toContain("printf 'GET /api/v1/pool/pool.test/check HTTP/1.1")
})

test.each([
  [['--requests', '9'], '--requests must be a whole number from 200'],
  [['--requests=many'], '--requests must be a whole number from 200'],
  [['--seed', 'a b'], '--seed must be'],
  [['--service=dns'], '--service must be api or witness'],
  [['--wrong'], "Unknown option '--wrong'"],
])('%j is rejected', (args, message) => {
  expect(() => parseOptions(args, 'x')).toThrow(message)
})

test('by default both services receive 240,000 requests with a random seed', () => {
  expect(parseOptions([], 'x')).toEqual({ requests: 240_000, seed: 'x', services: ['api', 'witness'], json: false })
  expect(parseOptions(['--service=api', '--requests', '500', '--seed=s', '--json'], 'x')).toEqual({
    requests: 500,
    seed: 's',
    services: ['api'],
    json: true,
  })
})

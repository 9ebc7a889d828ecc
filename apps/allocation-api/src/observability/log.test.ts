import { spawnSync } from 'node:child_process'
import { setImmediate as nextTurn } from 'node:timers/promises'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { RequestLogEntry } from './domain/observer.ts'
import { createLog, createStdout } from './log.ts'

const createCapture = (level: 'debug' | 'info' | 'error') => {
  const lines: string[] = []
  const log = createLog(level, {
    destination: { write: line => lines.push(line), afterTurn: callback => callback() },
    now: () => 1_795_000_000_123,
  })
  return { log, lines }
}

const entry: RequestLogEntry = {
  requestId: '3fc9a8a0-1111-4222-8333-444444444444',
  listener: 'in-cluster',
  address: '192.0.2.1',
  method: 'GET',
  route: '/api/v1/pool/:domain/check',
  status: 200,
  outcome: 'available',
  seconds: 0.0012,
}

test('the line of a request is the one that the library writes for its fields', () => {
  const entries = fc.record(
    {
      requestId: fc.stringMatching(/^[A-Za-z0-9._:/+=@-]{1,128}$/),
      listener: fc.constantFrom('in-cluster', 'operator'),
      address: fc.option(fc.oneof(fc.ipV4(), fc.ipV6())),
      deployment: fc.uuid(),
      method: fc.string(),
      route: fc.constantFrom('none', '/api/v1/pool/:domain/reserve'),
      status: fc.integer({ min: 100, max: 599 }),
      outcome: fc.constantFrom('', 'granted', 'not-found'),
      cause: fc.string({ unit: 'binary' }),
      seconds: fc.integer({ min: 0, max: 3.6e9 }).map(microseconds => microseconds / 1e6),
    },
    { requiredKeys: ['requestId', 'listener', 'address', 'method', 'route', 'status', 'outcome', 'seconds'] },
  )
  fc.assert(
    fc.property(entries, one => {
      const { log, lines } = createCapture('info')
      log.request(one)
      log.info(one, 'request')
      expect(lines).toHaveLength(2)
      expect(JSON.parse(lines[0] ?? '')).toEqual(JSON.parse(lines[1] ?? ''))
      expect(Object.keys(JSON.parse(lines[0] ?? ''))).toEqual(Object.keys(JSON.parse(lines[1] ?? '')))
      expect(lines[0]?.endsWith('}\n')).toBe(true)
    }),
  )
})

test.each([
  [0.001_234_567_8, 0.001_235],
  [0.000_000_4, 0],
  [12, 12],
])('the duration %f is logged as %f s, in microseconds', (seconds, logged) => {
  const { log, lines } = createCapture('info')
  log.request({ ...entry, seconds })
  expect(JSON.parse(lines[0] ?? '')).toMatchObject({ seconds: logged })
})

test.each([
  ['debug', '/livez', 1],
  ['info', '/livez', 0],
  ['info', entry.route, 1],
  ['error', entry.route, 0],
] as const)('at level %s, a request of %s has %i lines', (level, route, count) => {
  const { log, lines } = createCapture(level)
  log.request({ ...entry, route })
  expect(lines).toHaveLength(count)
})

test.each(['reservationToken', 'token', 'accessKey', 'secretKey', 'authorization', 'password', 'url'])(
  'a field %s is not logged, even if it is passed by mistake',
  field => {
    const { log, lines } = createCapture('info')
    log.info({ [field]: 'secret-value', inner: { [field]: 'secret-value' } }, 'mistake')
    expect(lines).toHaveLength(1)
    expect(lines[0]).not.toContain('secret-value')
  },
)

test('what follows a turn is called once, after it, in order', async () => {
  const { afterTurn } = createStdout(() => {})
  const calls: string[] = []
  afterTurn(() => {
    calls.push('first')
    afterTurn(() => calls.push('next turn'))
  })
  afterTurn(() => calls.push('second'))
  expect(calls).toEqual([])
  await nextTurn()
  expect(calls).toEqual(['first', 'second'])
  await nextTurn()
  expect(calls).toEqual(['first', 'second', 'next turn'])
})

test.each([
  ['process.exit(3)', 3],
  ['throw new Error("uncaught")', 1],
])('the last line before `%s` is written', (end, status) => {
  const code = `import { createLog, createStdout } from ${JSON.stringify(import.meta.resolve('./log.ts'))}
const destination = createStdout(flush => process.on('exit', flush))
const log = createLog('info', { destination, now: Date.now })
log.afterTurn(() => log.request(${JSON.stringify(entry)})); log.info('first'); ${end}`
  const child = spawnSync(process.execPath, ['--input-type=module', '--eval', code], { encoding: 'utf8' })
  expect(child.status).toBe(status)
  expect(child.stdout.split('\n').map(line => (line === '' ? null : JSON.parse(line).msg))).toEqual([
    'first',
    'request',
    null,
  ])
})

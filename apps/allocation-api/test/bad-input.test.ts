import { problem } from '@pool/contract'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { bodyRows, LIMIT_BYTES } from './bad-input/bodies.ts'
import { fieldRows } from './bad-input/fields.ts'
import { nameRows } from './bad-input/names.ts'
import { brokenRows, requestRows } from './bad-input/requests.ts'
import { type BadRow, type Given, reserve } from './bad-input/row.ts'
import { bytesOf, RawConnection, type RawRequest } from './support/raw.ts'
import { pool, startService, stepsOf } from './support/service.ts'

const { api, call, database } = await startService()
const { reserved, active } = stepsOf(call)
const port = Number(new URL(api.url).port)

let given: Given
let connection: RawConnection
/** Everything that the database holds apart from what was there before, as text. */
const contents = async () => ({
  allocations:
    await database.sql`select to_jsonb(a) - 'reservation_token' as row from pool_allocations a order by subdomain`,
  history: await database.sql`select to_jsonb(h) as row from allocation_history h order by id`,
  keys: await database.sql`select to_jsonb(k) as row from idempotency_keys k`,
  dns: await database.sql`select zone, subdomain, version, desired from dns_names`,
})
let before: Awaited<ReturnType<typeof contents>>

beforeAll(async () => {
  given = { token: (await reserved('held')).reservationToken }
  await active('live')
  before = await contents()
  connection = await RawConnection.open(port)
})

afterAll(() => connection.close())

/** On the connection that all rows share; a new one where the answer before has closed it. */
const send = async (bytes: Buffer) => {
  if (!connection.isOpen) connection = await RawConnection.open(port)
  return connection.send(bytes)
}

const expectAlive = async () => {
  const alive = await send(bytesOf({ path: '/livez' }))
  expect(alive.status, 'the connection serves the next request').toBe(200)
}

const expectRefused = async ({ bytes, status, code }: BadRow) => {
  const answer = await send(bytes(given))
  const closes = answer.headers.get('connection') === 'close'
  expect(answer.status).toBe(status)
  expect(answer.headers.get('content-type')).toBe('application/json')
  const body: unknown = JSON.parse(answer.text)
  expect(problem.parse(body)).toEqual(body)
  expect(body).toMatchObject({ error: code })
  if (status === 405) expect(answer.headers.get('allow')).toMatch(/^[A-Z]+(, [A-Z]+)*$/)
  if (closes) {
    connection.close()
    connection = await RawConnection.open(port)
  } else expect(connection.isOpen, 'the connection is kept').toBe(true)
  await expectAlive()
}

const groups: readonly (readonly [what: string, rows: readonly BadRow[]])[] = [
  ['names', nameRows],
  ['fields', fieldRows],
  ['bodies', bodyRows],
  ['paths, methods, headers and queries', requestRows],
  ['broken HTTP', brokenRows],
]

describe.each(groups)('bad %s', (_, rows) => {
  // As %s and not as $rule, which would cut the rule short.
  const named = rows.map(row => [row.rule, row.status, row.code, row] as const)
  test.each(named)('%s -> %i %s', (_rule, _status, _code, row) => expectRefused(row))
})

describe('an answer to HEAD has no body', () => {
  const rows: readonly (readonly [path: string, status: number])[] = [
    ['/livez', 200],
    [`${pool}/check?sub=a`, 200],
    [`${pool}/list`, 200],
    [`${pool}/reserve`, 405],
    ['/nope', 404],
    [`${pool}/list?limit=0`, 422],
  ]
  test.each(rows)('HEAD %s -> %i', async (path, status) => {
    const answer = await send(bytesOf({ method: 'HEAD', path }))
    expect(answer).toMatchObject({ status, text: '' })
    await expectAlive()
  })
})

describe('requests at the edge that are good', () => {
  const exact = JSON.stringify({ subdomain: 'exact' }).padEnd(LIMIT_BYTES)
  const deep = `{"subdomain":"deep","extra":${'['.repeat(30_000)}${']'.repeat(30_000)}}`
  const rows: readonly (readonly [rule: string, subdomain: string, request: RawRequest])[] = [
    ['a body of exactly 64 KiB', 'exact', reserve(exact)],
    [
      'a chunked body of exactly 64 KiB',
      'chunks',
      { ...reserve(exact.replace('exact', 'chunks').slice(0, -1)), chunked: true },
    ],
    ['an unknown field of any depth', 'deep', reserve(deep)],
    ['an unknown field called __proto__', 'proto', reserve('{"subdomain":"proto","__proto__":{"createdBy":"x"}}')],
    ['one byte order mark', 'bom', reserve('\ufeff{"subdomain":"bom"}')],
    [
      'of two equal keys the last counts, as everywhere in JSON',
      'last',
      reserve('{"subdomain":"-","subdomain":"last"}'),
    ],
    ['escapes in a key and a value', 'escaped', reserve('{"sub\\u0064omain":"\\u0065scaped"}')],
    ['white space around a name, the no-break space too', 'trimmed', reserve({ subdomain: '\u00a0\t Trimmed \r\n' })],
    ['63 characters', 'a'.repeat(63), reserve({ subdomain: 'a'.repeat(63) })],
    ['one letter', 'b', reserve({ subdomain: 'B' })],
    ['"--" anywhere else', 'a--b---c', reserve({ subdomain: 'a--b---c' })],
    [
      'a pool in capitals, encoded, with space',
      'pooled',
      { ...reserve({ subdomain: 'pooled' }), path: '/api/v1/pool/%20P%4fol%2ETEST%20/reserve' },
    ],
    ['no Content-Type', 'plain', reserve({ subdomain: 'plain' })],
    ['a Content-Type that is wrong', 'typed', reserve({ subdomain: 'typed' }, ['Content-Type: image/png'])],
    [
      'an Idempotency-Key of 255 visible characters',
      'keyed',
      reserve({ subdomain: 'keyed' }, [`Idempotency-Key: ${'~!"'.repeat(85)}`]),
    ],
    [
      'createdBy of 253 characters that take two code units each',
      'astral',
      reserve({ subdomain: 'astral', createdBy: '\u{1f600}'.repeat(253) }),
    ],
  ]
  test.each(rows)('%s', async (_, subdomain, request) => {
    const answer = await send(bytesOf(request))
    expect(answer.status, answer.text).toBe(201)
    expect(JSON.parse(answer.text).subdomain).toBe(subdomain)
    await call('DELETE', `${pool}/release?sub=${subdomain}`)
  })
})

test('an Expect that nobody can meet is answered in the shape of every error', async () => {
  const answer = await send(bytesOf({ path: '/livez', headers: ['Expect: banana'] }))
  expect(answer.status).toBe(417)
  expect(problem.safeParse(JSON.parse(answer.text || 'null')).success).toBe(true)
})

test('OPTIONS * is answered in the shape of every error', async () => {
  const answer = await send(bytesOf({ method: 'OPTIONS', path: '*' }))
  expect(answer.status).toBeLessThan(500)
  expect(problem.safeParse(JSON.parse(answer.text || 'null')).success).toBe(true)
})

test('the answer to a good request is not replaced by the answer to broken bytes behind it', async () => {
  const piped = await RawConnection.open(port)
  const first = await piped
    .send(Buffer.concat([bytesOf({ path: `${pool}/list` }), Buffer.from('broken\r\n\r\n')]))
    .catch(() => null)
  piped.close()
  // No answer tells the client that it does not know; another request's 400 would tell it a lie.
  expect(first?.status ?? 200).toBe(200)
})

test('afterwards the database holds what it held before', async () => {
  const after = await contents()
  const isOfBefore = ({ row }: { row: { subdomain?: string } }) => ['held', 'live'].includes(row.subdomain ?? '')
  expect(after.allocations).toEqual(before.allocations)
  expect(after.dns).toEqual(before.dns)
  expect(after.history.filter(entry => isOfBefore(entry as never))).toEqual(before.history)
  expect(after.keys.map(({ row }) => row.key)).toEqual(['~!"'.repeat(85)])
})

test('no request came to a 5xx, not even one that was broken off', () => {
  expect(api.lines.filter(line => /"status":5\d\d|request failed|unhandled/.test(line))).toEqual([])
})

test('the service is healthy', async () => {
  expect((await call('GET', '/healthz')).body).toEqual({ status: 'ok', managedDomains: ['pool.test'] })
})

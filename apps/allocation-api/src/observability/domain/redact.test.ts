import postgres from 'postgres'
import { describe, expect, test } from 'vitest'
import { describeError, redact } from './redact.ts'

describe('redact', () => {
  test.each([
    [
      'credentials of a URL',
      'at postgres://user:secret@db.test:5432/pool',
      'at postgres://<redacted>@db.test:5432/pool',
    ],
    ['a user without password', 'postgres://secret@db.test/x', 'postgres://<redacted>@db.test/x'],
    ['two URLs', 'a://u:secret@x b://v:secret@y', 'a://<redacted>@x b://<redacted>@y'],
    ['a password with a colon', 'a://u:se:cret@x', 'a://<redacted>@x'],
    ['a password with an at sign', 'a://u:se@secret@x/y', 'a://<redacted>@x/y'],
    ['a UUID', 'token 11111111-2222-4333-8444-555555555555 refused', 'token <redacted> refused'],
    ['a UUID in capitals', 'AAAAAAAA-BBBB-4CCC-8DDD-EEEEEEEEEEEE', '<redacted>'],
    ['a bearer token', 'sent Bearer secret.value to', 'sent Bearer <redacted> to'],
    ['a bearer token in capitals', 'AUTHORIZATION: BEARER secret', 'AUTHORIZATION: BEARER <redacted>'],
    ['a key in a query', 'GET /x?key=secret&a=1', 'GET /x?key=<redacted>&a=1'],
    ['a token later in a query', 'GET /x?a=1&token=secret', 'GET /x?a=1&token=<redacted>'],
    ['a password in a query', '?password=secret', '?password=<redacted>'],
    ['a signature in a query', '?Signature=secret', '?Signature=<redacted>'],
  ])('%s', (_, text, clean) => {
    expect(redact(text)).toBe(clean)
  })

  test.each([
    'a plain sentence, with 42 numbers.',
    'connect ECONNREFUSED 127.0.0.1:5432',
    'https://db.test/path without credentials',
    'mail to someone@example.test',
    '11111111-2222-3333',
    '',
  ])('does not change text without a secret: %j', text => {
    expect(redact(text)).toBe(text)
  })

  test('a long text is read at once', () => {
    const started = performance.now()
    redact('//'.repeat(30_000))
    redact('bearer '.repeat(10_000))
    expect(performance.now() - started).toBeLessThan(4_000)
  })
})

describe('describeError', () => {
  test('an error of ours: its name, its text without secrets, and where it was made', () => {
    const description = describeError(new TypeError('failed for postgres://u:secret@h/d'))
    expect(description).toMatchObject({ name: 'TypeError', message: 'failed for postgres://<redacted>@h/d' })
    expect(description.stack).toMatch(/^ {4}at .*redact\.test\.ts/)
  })

  test('an error of the system: its code too', () => {
    const error = Object.assign(new Error('connect ECONNREFUSED'), { code: 'ECONNREFUSED' })
    expect(describeError(error)).toMatchObject({ code: 'ECONNREFUSED', message: 'connect ECONNREFUSED' })
  })

  test('an error that Postgres reports: its SQLSTATE and constraint, and no text, which quotes values', () => {
    const error = Object.assign(new Error('Key (token)=(secret) already exists.'), {
      name: 'PostgresError',
      severity: 'ERROR',
      code: '23505',
      constraint_name: 'pool_allocations_pkey',
      detail: 'secret',
      query: 'insert … secret',
      parameters: ['secret'],
    })
    const description = describeError(error)
    expect(description).toMatchObject({ name: 'PostgresError', code: '23505', constraint: 'pool_allocations_pkey' })
    expect(JSON.stringify(description)).not.toContain('secret')
  })

  test('an error of the driver itself is one that Postgres reports', async () => {
    const sql = postgres(process.env.PDM_TEST_DSN ?? '', { max: 1 })
    const error: unknown = await sql`select ${'secret'}::uuid`.catch((reason: unknown) => reason)
    await sql.end()
    const description = describeError(error)
    expect(description).toMatchObject({ code: '22P02' })
    expect(JSON.stringify(description)).not.toContain('secret')
  })

  test('no more than twelve frames', () => {
    const deep = (n: number): Error => (n === 0 ? new Error('deep') : deep(n - 1))
    expect(describeError(deep(50)).stack?.split('\n').length).toBeLessThanOrEqual(12)
  })

  test('a text of several lines gives away nothing through the stack', () => {
    expect(describeError(new Error('one\nsecret two')).stack).not.toContain('secret')
  })

  test('the cause is omitted', () => {
    expect(JSON.stringify(describeError(new Error('x', { cause: new Error('secret') })))).not.toContain('secret')
  })

  test.each<readonly [what: string, thrown: unknown, message: string]>([
    ['text', 'Bearer secret', 'Bearer <redacted>'],
    ['undefined', undefined, 'undefined'],
    ['null', null, 'null'],
    ['an object', { token: 'secret' }, '[object Object]'],
  ])('a thrown value that is not an error: %s', (_, thrown, message) => {
    expect(describeError(thrown)).toEqual({ name: 'NotAnError', message })
  })
})

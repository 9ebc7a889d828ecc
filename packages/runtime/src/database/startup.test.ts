import postgres from 'postgres'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { toConnectionError } from './errors.ts'
import { type DatabaseWait, explainStartupError, StartupError, waitForDatabase } from './startup.ts'

const explain = (code: string, usesTls: boolean) =>
  explainStartupError(Object.assign(new postgres.PostgresError('mark'), { code }), { usesTls, urlVariable: 'URL' })

test.each([
  [
    true,
    /^the server does not admit the user to the database from this address; check the user and the name of the database in URL, .*pg_hba\.conf .* alter role <user> login/,
  ],
  [
    false,
    /without TLS; add sslmode=.* to URL if .*; otherwise check the user and the name of the database in URL, .*pg_hba\.conf .* alter role <user> login/,
  ],
])(
  'no entry of pg_hba.conf, with TLS: %s: it can be the address, the user, the database or a role without login',
  (usesTls, text) => {
    expect(explain('28000', usesTls)).toEqual({ isFinal: true, text: expect.stringMatching(text) })
  },
)

test('a rejection by the pooler may have the same cause as an outage: it names both', () => {
  expect(explain('08P01', true)).toEqual({
    isFinal: false,
    text: expect.stringMatching(/^the connection pooler rejects .* in URL and in userlist\.txt, .*\(08P01\)$/),
  })
})

test('a missing privilege: the role of migrate needs other rights than that of the service', () => {
  expect(explain('42501', true)).toEqual({
    isFinal: true,
    text: expect.stringMatching(/run migrate as a role that owns the tables .* the grants that the doctor names/),
  })
})

test.each([
  ['42P01', /lacks a table.* search_path/],
  ['53300', /too many connections; raise max_connections/],
  ['57P03', /starts, stops or recovers/],
  ['57014', /statement_timeout .* that URL names/],
  ['55000', /allow_connections true/],
  ['58030', /reports an error; read its log/],
])('a server that answers %s is waited for, and is not called unreachable', (code, text) => {
  expect(explain(code, true)).toEqual({ isFinal: false, text: expect.stringMatching(text) })
})

const systemError = (code: string) =>
  toConnectionError(Object.assign(new Error('mark-host'), { code }), { hadSession: false })
const serverError = (code: string) => Object.assign(new postgres.PostgresError('mark-role'), { code })
const HOUR_MS = 3_600_000

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] })
})
afterEach(() => {
  vi.useRealTimers()
})

test('the pauses grow to 4 s; each step is reported, then once a minute and when the reason changes', async () => {
  const attempts: number[] = []
  const waits: DatabaseWait[] = []
  const startedAt = performance.now()
  const waiting = waitForDatabase(
    async () => {
      const ms = performance.now() - startedAt
      attempts.push(ms)
      if (ms < HOUR_MS) throw systemError(ms < HOUR_MS / 2 ? 'ECONNREFUSED' : 'ENOTFOUND')
    },
    {
      usesTls: false,
      urlVariable: 'DATABASE_URL',
      onWait: wait => waits.push(wait),
      sleep: ms => new Promise(done => setTimeout(done, ms)),
    },
  )
  await vi.advanceTimersByTimeAsync(HOUR_MS + 5_000)
  await waiting
  const pauses = attempts.slice(1).map((ms, index) => ms - (attempts[index] ?? 0))
  expect(pauses.slice(0, 7)).toEqual([250, 500, 1_000, 2_000, 4_000, 4_000, 4_000])
  expect(Math.max(...pauses)).toBe(4_000)
  expect(waits.slice(0, 4).map(({ waitedMs }) => waitedMs)).toEqual([0, 250, 750, 1_750])
  expect(waits.length).toBeGreaterThan(60)
  expect(waits.length).toBeLessThan(70)
  expect(new Set(waits.map(({ reason }) => reason))).toEqual(
    new Set(
      ['ECONNREFUSED', 'ENOTFOUND'].map(
        code =>
          `the database cannot be reached; start the server, or correct the host and the port in DATABASE_URL (${code})`,
      ),
    ),
  )
})

test.each(['28P01', '28000', '3D000', '42501', '26000'])(
  'SQLSTATE %s ends the wait with one line without a value',
  async code => {
    const failure = waitForDatabase(() => Promise.reject(serverError(code)), {
      usesTls: false,
      urlVariable: 'DATABASE_URL',
      onWait: () => {},
    })
    await expect(failure).rejects.toThrow(StartupError)
    const message = await failure.catch((error: Error) => error.message)
    expect(message).not.toMatch(/mark-|\n/)
  },
)

test('any other error ends the wait as it is', async () => {
  const defect = new Error('defect')
  await expect(
    waitForDatabase(() => Promise.reject(defect), { usesTls: false, urlVariable: 'DATABASE_URL', onWait: () => {} }),
  ).rejects.toBe(defect)
})

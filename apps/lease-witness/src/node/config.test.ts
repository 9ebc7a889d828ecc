import { expect, test } from 'vitest'
import { readConfig } from './config.ts'

const good = {
  PORT: '0',
  WITNESS_DATABASE_URL: 'postgres://user@127.0.0.1:1/db',
  BEARER_TOKENS_CSV: 'token-of-region-a',
}

test.each<Record<string, string>>([
  { PORT: 'http', WITNESS_DATABASE_URL: '', BEARER_TOKENS_CSV: '', WITNESS_DATABSE_URL: 'mark-password' },
  {
    WITNESS_DATABASE_URL: 'mysql://user:mark-password@host/db',
    WITNESS_LISTEN_URL: 'postgres://user:mark-password%zz@127.0.0.1:1/db',
    WITNESS_DATABASE_POOL_SIZE: '0',
    WITNESS_DATABASE_TIMEOUT: '5',
    WITNESS_ALLOW_LOST_WRITES: 'perhaps',
    WITNESS_DRAIN_DELAY: '1h',
    TOKEN_POLICIES: '[{"name":"mark-name"}]',
    LOG_LEVEL: 'loud',
  },
  { https_proxy: 'http://user:mark-password@proxy:port', NO_PROXY: 'http://mark-password' },
  { WITNESS_DATABASE_URL_FILE: '/no/such/file', BEARER_TOKENS_CSV_FILE: '/no/such/file', LOG_LEVEL: 'loud' },
])('every invalid variable is named, and no secret: %j', invalid => {
  const read = readConfig({ ...good, ...invalid })
  const text = JSON.stringify(read)
  expect(read).toHaveProperty('issues')
  for (const variable of Object.keys(invalid)) expect(text).toContain(variable)
  expect(text).not.toContain('mark-password')
})

const withUrl = (variable: string, url: string, requires = 'false') =>
  readConfig({ ...good, [variable]: url, WITNESS_REQUIRE_TLS: requires })

test.each(['WITNESS_DATABASE_URL', 'WITNESS_LISTEN_URL'])('%s without TLS to another machine', variable => {
  const issue = [{ variable, detail: expect.stringMatching(/without TLS.*sslmode=verify-full$/) }]
  const plain = 'postgres://user:mark-password@db.test/db'
  expect(withUrl(variable, plain)).toMatchObject({ config: { warnings: issue } })
  expect(withUrl(variable, plain, 'true')).toEqual({ issues: issue })
  expect(withUrl(variable, `${plain}?sslmode=require`, 'true')).toMatchObject({ config: { warnings: [] } })
  expect(withUrl(variable, good.WITNESS_DATABASE_URL, 'true')).toMatchObject({ config: { warnings: [] } })
})

test('the defaults', () => {
  const { WITNESS_DATABASE_URL: url } = good
  expect(readConfig(good)).toMatchObject({
    config: {
      port: 0,
      database: { url, listenUrl: url, usesTls: false, poolSize: 4, timeoutMs: 5_000 },
      allowsLostWrites: false,
      drainMs: 0,
      keepAliveMs: 75_000,
    },
  })
})

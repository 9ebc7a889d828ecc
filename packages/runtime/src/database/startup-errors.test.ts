import postgres from 'postgres'
import { expect, test } from 'vitest'
import { explainStartupError } from './startup-errors.ts'

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

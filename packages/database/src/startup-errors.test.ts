import postgres from 'postgres'
import { expect, test } from 'vitest'
import { explainStartupError } from './startup-errors.ts'

const explain = (code: string, usesTls: boolean) =>
  explainStartupError(Object.assign(new postgres.PostgresError('mark'), { code }), { usesTls, urlVariable: 'URL' })

test.each([
  [
    true,
    /^the server does not admit the user to the database from this address; check the user and the name of the database in URL, .*pg_hba\.conf/,
  ],
  [
    false,
    /without TLS; add sslmode=.* to URL if .*; otherwise check the user and the name of the database in URL, .*pg_hba\.conf/,
  ],
])('no entry of pg_hba.conf, with TLS: %s: it can be the address, the user or the database', (usesTls, text) => {
  expect(explain('28000', usesTls)).toEqual({ isFinal: true, text: expect.stringMatching(text) })
})

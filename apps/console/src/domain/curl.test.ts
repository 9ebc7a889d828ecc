import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { quoteShellWord, renderCurl } from './curl.ts'

const origin = 'https://operator.example:8081'
const idempotencyKey = 'key-of-the-form'

test.each([['plain-word_1.2'], ['two words'], ["it's"], ['$(touch x) `y` "z" \\'], ['new\nline']])(
  'a shell reads %j as one word',
  text => expect(execFileSync('sh', ['-c', `printf %s ${quoteShellWord(text)}`], { encoding: 'utf8' })).toBe(text),
)

test('the command sends the body and the token of the file', () => {
  const folder = mkdtempSync(join(tmpdir(), 'console-curl-'))
  try {
    writeFileSync(join(folder, 'operator-token'), 'token-of-the-operator\n')
    // It prints its arguments, and the files that they name.
    const program =
      "for (const word of process.argv.slice(2)) console.log(word[0] === '@' ? require('fs').readFileSync(word.slice(1), 'utf8') : word)"
    writeFileSync(join(folder, 'curl'), `#!${process.execPath}\n${program}\n`, { mode: 0o755 })
    const command = renderCurl({ origin, body: { orgName: "Ac'me $(id)" }, hasKeys: false, idempotencyKey })
    const env = { PATH: `${folder}:${process.env.PATH}` }
    const sent = execFileSync('bash', ['-c', command], { cwd: folder, env, encoding: 'utf8' })
    expect(sent).toContain('Authorization: Bearer token-of-the-operator')
    expect(sent).toContain(JSON.stringify({ orgName: "Ac'me $(id)" }, null, 2))
    expect(sent).toContain('Idempotency-Key: key-of-the-form')
    expect(sent).toContain('https://operator.example:8081/api/v1/deployments')
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
})

test('the keys come from files', () => {
  const command = renderCurl({ origin, body: { orgName: 'Acme' }, hasKeys: true, idempotencyKey })
  expect(command).toMatchInlineSnapshot(`
    "curl --silent --show-error https://operator.example:8081/api/v1/deployments \\
      --header @<(printf 'Authorization: Bearer %s\\n' "$(cat operator-token)") \\
      --header 'Content-Type: application/json' \\
      --header 'Idempotency-Key: key-of-the-form' \\
      --data-binary @<(jq --null-input \\
        --rawfile access access-key --rawfile secret secret-key \\
        '{
      "orgName": "Acme"
    } + {
      objectStorageAccessKey: $access,
      objectStorageSecretKey: $secret
    }')"
  `)
})

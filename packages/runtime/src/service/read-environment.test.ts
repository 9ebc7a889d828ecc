import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { readEnvironment, readSecretFiles } from './read-environment.ts'

const known = { prefixes: ['APP_'], names: ['APP_PORT', 'APP_SECRET', 'APP_SECRET_FILE'] }
const read = (variables: Record<string, string>) =>
  readEnvironment(variables, { known, secrets: ['APP_SECRET'] }, env => ({
    port: env.integer('APP_PORT', 80, { min: 1, max: 99 }),
    secret: env.required('APP_SECRET', 'a secret'),
  }))
/** The beginning of each issue. */
const toWords = (result: ReturnType<typeof read>): readonly string[] =>
  'issues' in result
    ? result.issues.map(({ variable, detail }) => `${variable} ${detail.split(' ').slice(0, 3).join(' ')}`)
    : []

test.each<readonly [what: string, variables: Record<string, string>, issues: readonly string[]]>([
  ['valid', { APP_SECRET: 's', APP_PORT: '8' }, []],
  ['valid, with a misspelt variable', { APP_SECRET: 's', APP_PROT: '8' }, []],
  ['invalid', { APP_SECRET: 's', APP_PORT: 'x' }, ['APP_PORT must be a']],
  [
    'invalid, with a misspelt variable',
    { APP_SECERT: 's', APP_PORT: 'x' },
    ['APP_PORT must be a', 'APP_SECRET is required: a', 'APP_SECERT is not a'],
  ],
  [
    'a file that cannot be read: the secret is not missing too',
    { APP_SECRET_FILE: '/no/file' },
    ['APP_SECRET_FILE names /no/file, which'],
  ],
])('%s', (_, variables, issues) => {
  const result = read(variables)
  expect(toWords(result)).toEqual(issues)
  expect('config' in result).toBe(issues.length === 0)
})

test('a caller that returns null has added an issue', () => {
  const { issues } = readEnvironment({}, { known, secrets: [] }, env => {
    env.addIssue('APP_PORT', 'is wrong')
    return null
  }) as { issues: unknown }
  expect(issues).toEqual([{ variable: 'APP_PORT', detail: 'is wrong' }])
})

const folder = mkdtempSync(join(tmpdir(), 'secret-files-'))
afterAll(() => rmSync(folder, { recursive: true }))

const write = (name: string, content: string | Uint8Array): string => {
  const path = join(folder, name)
  writeFileSync(path, content)
  return path
}
const readFiles = (env: Record<string, string>) => readSecretFiles(env, ['KEY', 'TOKEN'])

describe('the value of a secret is the content of the file without one final newline', () => {
  test.each([
    ['secret', 'secret'],
    ['secret\n', 'secret'],
    ['secret\r\n', 'secret'],
    ['secret\n\n', 'secret\n'],
    [' se\ncret ', ' se\ncret '],
    ['gehëim', 'gehëim'],
  ])('%j', (content, value) => {
    expect(readFiles({ KEY_FILE: write('value', content), OTHER: 'o' })).toEqual({
      env: { KEY: value, OTHER: 'o' },
      issues: [],
    })
  })
})

test('a variable that is not a secret is read from no file', () => {
  const env = { OTHER_FILE: write('other', 'x') }
  expect(readFiles(env)).toEqual({ env, issues: [] })
})

test('a blank path of a secret counts as unset', () => {
  expect(readFiles({ KEY: 'k', KEY_FILE: ' ' })).toEqual({ env: { KEY: 'k' }, issues: [] })
})

describe('an invalid file of a secret', () => {
  mkdirSync(join(folder, 'directory'))
  test.each<readonly [what: string, path: string, detail: RegExp]>([
    ['missing', join(folder, 'missing'), /cannot be read \(ENOENT\); correct the path/],
    ['below a file', join(write('file', 'mark'), 'x'), /cannot be read \(ENOTDIR\)/],
    ['a directory', join(folder, 'directory'), /is a directory; name a file/],
    ['empty', write('empty', '\n'), /is empty; write the secret into it/],
    ['too large', write('large', 'mark'.repeat(300_000)), /larger than 1 MiB/],
    ['not UTF-8', write('binary', Buffer.from([0x6d, 0x61, 0x72, 0x6b, 0xff])), /is not UTF-8 text/],
  ])('%s', (_, path, detail) => {
    const { env, issues } = readFiles({ KEY_FILE: path })
    expect(env).toEqual({})
    expect(issues).toEqual([{ variable: 'KEY_FILE', detail: expect.stringMatching(detail) }])
    expect(issues[0]?.detail).toContain(path)
    expect(issues[0]?.detail.replaceAll(path, '')).not.toContain('mark')
  })

  test('the variable and its file', () => {
    const { issues } = readFiles({ KEY: 'mark', KEY_FILE: write('both', 'mark') })
    expect(issues).toEqual([{ variable: 'KEY_FILE', detail: 'must not be set together with KEY; unset one of them' }])
  })
})

import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { readSecretFiles } from './secret-files.ts'

const folder = mkdtempSync(join(tmpdir(), 'secret-files-'))
afterAll(() => rmSync(folder, { recursive: true }))

const write = (name: string, content: string | Uint8Array): string => {
  const path = join(folder, name)
  writeFileSync(path, content)
  return path
}
const read = (env: Record<string, string>) => readSecretFiles(env, ['KEY', 'TOKEN'])

describe('the value is the content of the file without one final newline', () => {
  test.each([
    ['secret', 'secret'],
    ['secret\n', 'secret'],
    ['secret\r\n', 'secret'],
    ['secret\n\n', 'secret\n'],
    [' se\ncret ', ' se\ncret '],
    ['gehëim', 'gehëim'],
  ])('%j', (content, value) => {
    expect(read({ KEY_FILE: write('value', content), OTHER: 'o' })).toEqual({
      env: { KEY: value, OTHER: 'o' },
      issues: [],
    })
  })
})

test('a variable that is not a secret is read from no file', () => {
  const env = { OTHER_FILE: write('other', 'x') }
  expect(read(env)).toEqual({ env, issues: [] })
})

test('a blank path counts as unset', () => {
  expect(read({ KEY: 'k', KEY_FILE: ' ' })).toEqual({ env: { KEY: 'k' }, issues: [] })
})

describe('invalid', () => {
  mkdirSync(join(folder, 'directory'))
  test.each<readonly [what: string, path: string, detail: RegExp]>([
    ['missing', join(folder, 'missing'), /cannot be read \(ENOENT\); correct the path/],
    ['below a file', join(write('file', 'mark'), 'x'), /cannot be read \(ENOTDIR\)/],
    ['a directory', join(folder, 'directory'), /is a directory; name a file/],
    ['empty', write('empty', '\n'), /is empty; write the secret into it/],
    ['too large', write('large', 'mark'.repeat(300_000)), /larger than 1 MiB/],
    ['not UTF-8', write('binary', Buffer.from([0x6d, 0x61, 0x72, 0x6b, 0xff])), /is not UTF-8 text/],
  ])('%s', (_, path, detail) => {
    const { env, issues } = read({ KEY_FILE: path })
    expect(env).toEqual({})
    expect(issues).toEqual([{ variable: 'KEY_FILE', detail: expect.stringMatching(detail) }])
    expect(issues[0]?.detail).toContain(path)
    expect(issues[0]?.detail.replaceAll(path, '')).not.toContain('mark')
  })

  test('the variable and its file', () => {
    const { issues } = read({ KEY: 'mark', KEY_FILE: write('both', 'mark') })
    expect(issues).toEqual([{ variable: 'KEY_FILE', detail: 'must not be set together with KEY; unset one of them' }])
  })
})

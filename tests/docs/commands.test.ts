import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseShellBlocks } from '@pool/test-kit/shell-blocks.ts'
import { expect, test } from 'vitest'

const root = fileURLToPath(new URL('../..', import.meta.url))
const read = (page: string): string => readFileSync(join(root, page), 'utf8')
const pages = execFileSync('git', ['ls-files', '--cached', '--others', '--exclude-standard', '*.md'], {
  cwd: root,
  encoding: 'utf8',
})
  .split('\n')
  .filter(page => page !== '')

/** What a command can need; CONTRIBUTING.md says what each means. */
const marks = Array.from(read('CONTRIBUTING.md').matchAll(/^\| `needs=([\w-]+)`/gm), ([, mark]) => mark)

/** A test of packages/dev runs the commands of these pages that need nothing. */
const isRun = (page: string): boolean => page.startsWith('docs/') || page === 'README.md'

const blocks = pages.flatMap(page => parseShellBlocks(read(page)).map(block => ({ page, ...block })))

test.each(blocks)('$page:$line: a test runs the commands, or they say what they need', ({ page, needs }) => {
  if (needs === undefined) expect(isRun(page)).toBe(true)
  else expect(marks).toContain(needs)
})

test.each(blocks)('$page:$line: the shell can parse the commands', ({ code }) => {
  expect(() => execFileSync('bash', ['-n', '-c', code], { stdio: 'pipe' })).not.toThrow()
})

import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'

const root = fileURLToPath(new URL('../..', import.meta.url))
const read = (path: string): string => readFileSync(join(root, path), 'utf8')
const tests = execFileSync('git', ['ls-files', '--cached', '--others', '--exclude-standard', '*.test.ts'], {
  cwd: root,
  encoding: 'utf8',
}).split('\n')

/** The test files with this end of their path, without the suffix of when they run. */
const findTests = (name: string, suffixes: RegExp): readonly string[] =>
  tests.filter(path => suffixes.test(path) && `/${path.replace(suffixes, '')}`.endsWith(`/${name}`))

const PROOF = /\.proof\.test\.ts$/
const ORDINARY = /(?<!\.proof)(?:\.ci)?\.test\.ts$/

const page = read('docs/verification.md')
const proofs = Array.from(page.split('## Proofs')[1]?.matchAll(/^\| `([\w/-]+)` \|/gm) ?? [], ([, name = '']) => name)
const guarantees = Array.from(
  page.split('## Guarantees')[1]?.matchAll(/^\| (.*) \| `([\w/-]+)` (.*) \|$/gm) ?? [],
  ([, guarantee = '', name = '', title = '']) => ({ guarantee, name, title }),
)

test('every proof is in the table', () => {
  const isListed = (path: string) => proofs.some(name => findTests(name, PROOF).includes(path))
  expect(tests.filter(path => PROOF.test(path) && !isListed(path))).toEqual([])
})

test.each(proofs)('the proof %s exists once', name => {
  expect(findTests(name, PROOF)).toHaveLength(1)
})

test.each(guarantees)('a test holds: $guarantee', ({ name, title }) => {
  const [path = '', ...others] = findTests(name, ORDINARY)
  expect({ path, others }).toEqual({ path: expect.stringMatching(/./), others: [] })
  expect(read(path)).toContain(title)
})

test('every row of the page is read', () => {
  const rows = page.match(/^\| (?!command|proof|---).*$/gm)?.filter(row => !/ \| test \|$/.test(row)) ?? []
  const commands = rows.filter(row => /^\| `(?:REAL_PROVIDERS|npx)/.test(row))
  expect(rows).toHaveLength(commands.length + proofs.length + guarantees.length)
})

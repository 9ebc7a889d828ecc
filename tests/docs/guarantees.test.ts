import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'

const root = fileURLToPath(new URL('../..', import.meta.url))
const read = (path: string): string => readFileSync(join(root, path), 'utf8')
// The tests of the console are in tasks, which its test files share.
const patterns = ['*.test.ts', 'apps/console/test/tasks/*.ts']
const tests = execFileSync('git', ['ls-files', '--cached', '--others', '--exclude-standard', ...patterns], {
  cwd: root,
  encoding: 'utf8',
}).split('\n')

const isProof = (path: string): boolean => path.endsWith('.proof.test.ts')
const proofFiles = tests.filter(isProof)
const ordinaryFiles = tests.filter(path => !isProof(path))

/** The files with this end of their path, without the suffix of when they run. */
const find = (files: readonly string[], name: string): readonly string[] =>
  files.filter(path => `/${path.replace(/(?:(?:\.(?:ci|proof))?\.test)?\.ts$/, '')}`.endsWith(`/${name}`))

const page = read('docs/verification.md')
const proofs = Array.from(page.split('## Proofs')[1]?.matchAll(/^\| `([\w/-]+)` \|/gm) ?? [], ([, name = '']) => name)
/** The rows of who can do what have a test in their last cell. */
const protections = Array.from(
  read('docs/security.md')
    .split('## Secrets')[0]
    ?.matchAll(/^\| .*\| ([^|]*) \| `([\w/-]+)` ([^|]*) \|$/gm) ?? [],
  ([row = '', , name = '', title = '']) => ({ guarantee: row, name, title }),
)
const guarantees = Array.from(
  page.split('## Guarantees')[1]?.matchAll(/^\| (.*) \| `([\w/-]+)` (.*) \|$/gm) ?? [],
  ([, guarantee = '', name = '', title = '']) => ({ guarantee, name, title }),
)

test('every proof is in the table', () => {
  const listed = proofs.flatMap(name => find(proofFiles, name))
  expect(proofFiles.filter(path => !listed.includes(path))).toEqual([])
})

test.each(proofs)('the proof %s exists once', name => {
  expect(find(proofFiles, name)).toHaveLength(1)
})

test('what protects from each party is named with its test, but for the module', () => {
  const rows =
    read('docs/security.md')
      .split('## Secrets')[0]
      ?.match(/^\| (?!who|---).*$/gm) ?? []
  expect(rows).toHaveLength(protections.length + 1)
})

test.each([...guarantees, ...protections])('a test holds: $guarantee', ({ name, title }) => {
  const [path = '', ...others] = find(ordinaryFiles, name)
  expect({ path, others }).toEqual({ path: expect.stringMatching(/./), others: [] })
  expect(read(path)).toContain(title)
})

test('every row of the page is read', () => {
  const rows = page.match(/^\| (?!command|proof|---).*$/gm)?.filter(row => !/ \| test \|$/.test(row)) ?? []
  const commands = rows.filter(row => /^\| `(?:REAL_PROVIDERS|npx)/.test(row))
  expect(rows).toHaveLength(commands.length + proofs.length + guarantees.length)
})

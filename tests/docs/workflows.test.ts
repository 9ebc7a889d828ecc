import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { parse } from 'yaml'

const root = fileURLToPath(new URL('../..', import.meta.url))
const files = globSync('{.,examples/*}/.github/{workflows,actions/*}/*.{yml,yaml}', { cwd: root })
const read = (file: string): string => readFileSync(join(root, file), 'utf8')

test('the workflows of this repository and of the examples are found', () => {
  const some = ['.github/workflows/release.yml', 'examples/ci/.github/workflows/test.yml']
  expect(files).toEqual(expect.arrayContaining(some))
})

test.each(files)('%s names each action by a commit, with its version, and leaves no token in a checkout', file => {
  const used = Array.from(read(file).matchAll(/^ *(?:- )?["']?uses["']?: *(.*)\n(.*)\n(.*)/gm))
  expect(used).not.toEqual([])
  for (const [, action, ...next] of used) {
    expect(action).toMatch(/^[\w.-]+(?:\/[\w.-]+)+@[0-9a-f]{40} # v\d+\.\d+\.\d+$/)
    if (action?.startsWith('actions/checkout@')) expect(next.join()).toContain('persist-credentials: false')
  }
})

test.each(files)('%s may write in a job that says so only, which runs programs of an exact version', file => {
  const { permissions, jobs } = parse(read(file))
  expect(permissions).toEqual({ contents: 'read' })
  const texts = Object.values<object>(jobs).map(job => JSON.stringify(job))
  for (const text of texts.filter(job => /"permissions":\{[^}]*"write/.test(job))) {
    for (const [, program] of text.matchAll(/\b(?:npx|dlx)(?: -\S+)* (\S+)/g))
      expect(program).toMatch(/@\d+\.\d+\.\d+$/)
  }
})

test('each test with real servers runs in one job of the matrix', () => {
  const { matrix } = parse(read('.github/workflows/ci.yml')).jobs.servers.strategy
  const paths: string[] = matrix.include.flatMap((job: { readonly paths: string }) => job.paths.split(' '))
  const tests = globSync('{apps,packages,tests}/**/*.ci.test.ts', { cwd: root, exclude: ['**/node_modules'] })
  expect(tests.length).toBeGreaterThan(0)
  expect(tests.filter(test => paths.filter(path => test.startsWith(path)).length !== 1)).toEqual([])
})

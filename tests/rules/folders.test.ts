import { globSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'

// The rules of dependency-cruiser compare single folders, such as http/ and http/domain/. This compares those at the top
// of src/, with everything below them.

const root = fileURLToPath(new URL('../..', import.meta.url))

/** A folder at the top of src/, undefined for a file beside it. */
const toFolder = (path: string): string | undefined => /^([^/.]+)\//.exec(path)?.[1]

const listImports = (source: string): string[] =>
  globSync('**/*.{ts,tsx}', { cwd: source })
    .filter(path => !/\.test\.tsx?$/.test(path))
    .flatMap(path => {
      const imports = readFileSync(join(source, path), 'utf8').matchAll(/(?:from|import) ?\(?'(\.[^']+)'/g)
      return Array.from(imports, ([, target = '']) => [path, join(dirname(path), target)].map(toFolder).join(' '))
    })

test('no two folders of an app import each other', () => {
  const pairs = globSync('apps/*/src', { cwd: root }).flatMap(source => {
    const imports = new Set(listImports(join(root, source)))
    const folders = [...imports].flatMap(text => text.split(' '))
    return [...new Set(folders)].flatMap(from =>
      folders
        .filter((to, index) => from < to && folders.indexOf(to) === index)
        .filter(to => from !== '' && imports.has(`${from} ${to}`) && imports.has(`${to} ${from}`))
        .map(to => `${source.split('/')[1]}: ${from} and ${to}`),
    )
  })
  expect(pairs).toEqual([])
})

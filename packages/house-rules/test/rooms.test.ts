import { globSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { pure, rooms } from '../imports.mjs'

const root = fileURLToPath(new URL('../../..', import.meta.url))

const plugin = './packages/house-rules/rules-are-synchronous.grit'
interface Biome {
  readonly overrides: readonly { readonly includes: readonly string[]; readonly plugins?: readonly string[] }[]
}
const biome: Biome = JSON.parse(readFileSync(`${root}/biome.json`, 'utf8'))

const filesOf = (patterns: readonly string[]): readonly string[] =>
  globSync([...patterns], { cwd: root })
    .filter(file => !file.endsWith('.test.ts'))
    .sort()
const sources = filesOf(['apps/*/src/**/*.ts', 'packages/contract/src/**/*.ts'])
const matching = (patterns: readonly string[], file: string) => patterns.filter(one => new RegExp(one).test(file))

test('a file is in one room', () => {
  const inApps = sources.filter(file => file.startsWith('apps/'))
  expect(inApps.length).toBeGreaterThan(100)
  expect(inApps.filter(file => matching(rooms, file).length !== 1)).toEqual([])
})

test('what the import table calls a rule is what biome.json holds to purity', () => {
  const [override, ...more] = biome.overrides.filter(({ plugins }) => plugins?.includes(plugin))
  expect(more).toEqual([])
  const held = filesOf((override?.includes ?? []).filter(pattern => !pattern.startsWith('!')))
  expect(held).toEqual(sources.filter(file => matching(pure, file).length > 0))
})

/** `{a,b}` as one pattern for each; no pattern has braces twice. */
const oneByOne = (pattern: string): readonly string[] => {
  const [, before = '', choices, after = ''] = /^([^{]*)\{([^}]*)\}(.*)$/.exec(pattern) ?? []
  return choices === undefined ? [pattern] : choices.split(',').map(choice => before + choice + after)
}

test('biome.json names no file that is gone', () => {
  const named = biome.overrides.flatMap(({ includes }) => includes).map(pattern => pattern.replace(/^!/, ''))
  expect(
    named
      .flatMap(oneByOne)
      .filter(pattern => globSync(pattern, { cwd: root, exclude: ['**/node_modules'] }).length === 0),
  ).toEqual([])
})

import { execFileSync } from 'node:child_process'
import { globSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, matchesGlob } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'
import { type Layer, layers, toPathPatterns } from './layers.mjs'

const root = fileURLToPath(new URL('../..', import.meta.url))
const PLUGIN = './tests/rules/no-async-in-domain.grit'
/** The layers of pure functions. */
const PURE = ['contract', 'api-domain', 'lease-domain', 'client-domain', 'console-domain']

const sources = globSync(['apps/*/src/**/*.{ts,tsx}', 'packages/{contract,client}/src/**/*.ts'], { cwd: root }).filter(
  file => !file.endsWith('.test.ts'),
)
const findLayer = (file: string): Layer | undefined =>
  layers.find(layer => toPathPatterns(layer).some(pattern => new RegExp(pattern).test(file)))

interface Override {
  readonly includes: readonly string[]
  readonly plugins?: readonly string[]
  readonly linter?: { rules: { style: { noRestrictedGlobals?: { options: { deniedGlobals: object } } } } }
}
const { overrides }: { overrides: readonly Override[] } = JSON.parse(readFileSync(join(root, 'biome.json'), 'utf8'))
const purity = overrides.filter(({ plugins }) => plugins?.includes(PLUGIN))

test('every layer has files', () => {
  const used = new Set(sources.map(file => findLayer(file)?.name))
  expect(layers.map(({ name }) => name).filter(name => !used.has(name))).toEqual([])
})

test('a layer imports only layers that exist, and no layer imports itself through others', () => {
  const reached = (name: string, seen: readonly string[] = []): readonly string[] => {
    if (seen.includes(name)) return [[...seen, name].join(' > ')]
    const layer = layers.find(candidate => candidate.name === name)
    if (!layer) return [`${name} does not exist`]
    return (layer.imports ?? []).flatMap(next => reached(next, [...seen, name]))
  }
  expect(layers.flatMap(({ name }) => reached(name))).toEqual([])
})

describe('biome.json', () => {
  test('checks exactly the pure layers for purity', () => {
    expect(purity).toHaveLength(1)
    const checked = purity[0]?.includes.filter(pattern => !pattern.startsWith('!')) ?? []
    const nested = ['naming/a', 'config/a/b', 'dns/domain/a', 'dns/domain/a/b', 'dns/providers/local/domain/a', 'lib/a']
    const samples = nested.map(path => `apps/allocation-api/src/${path}.ts`)
    expect(sources.length).toBeGreaterThan(100)
    for (const file of [...sources, ...samples]) {
      const isChecked = checked.some(pattern => matchesGlob(file, pattern))
      expect({ file, isChecked }).toEqual({ file, isChecked: PURE.includes(findLayer(file)?.name ?? '') })
    }
    const denied = Object.keys(purity[0]?.linter?.rules.style.noRestrictedGlobals?.options.deniedGlobals ?? {})
    expect(denied.toSorted()).toEqual(['crypto', 'fetch', 'performance', 'process', 'setInterval', 'setTimeout'])
  })

  test.each([
    'export const f = async () => 1',
    'export async function f() { return 1 }',
    'export const f = () => Date.now()',
    'export const f = () => new Date()',
    'export const f = () => Math.random()',
    'export const f = sql => sql`select 1`',
  ])('the plugin reports: %s', text => {
    const folder = mkdtempSync(join(tmpdir(), 'purity-'))
    try {
      writeFileSync(join(folder, 'breach.ts'), `${text}\n`)
      writeFileSync(join(folder, 'biome.json'), JSON.stringify({ root: true, plugins: [join(root, PLUGIN)] }))
      const biome = join(root, 'node_modules/.bin/biome')
      const lint = () =>
        execFileSync(biome, ['lint', '--only=plugin', '--config-path', folder, join(folder, 'breach.ts')], {
          stdio: 'pipe',
        })
      expect(lint).toThrow(/Domain code is pure/)
    } finally {
      rmSync(folder, { recursive: true })
    }
  })

  test('has no pattern without files', () => {
    const patterns = overrides.flatMap(({ includes }) => includes).map(pattern => pattern.replace(/^!/, ''))
    const exclude = ['**/node_modules']
    expect(patterns.filter(pattern => globSync(pattern, { cwd: root, exclude }).length === 0)).toEqual([])
  })
})

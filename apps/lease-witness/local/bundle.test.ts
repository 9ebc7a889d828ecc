import { execFile } from 'node:child_process'
import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { type BundleOptions, bundle } from './bundle.ts'

let root: string
let entry: string
let cacheDir: string

/** An hour ago: a file that changes during the build keeps its bundle out of the cache. */
const before = new Date(Date.now() - 3_600_000)
const write = (path: string, text: string) => {
  const file = join(root, path)
  mkdirSync(dirname(file), { recursive: true })
  writeFileSync(file, text)
  utimesSync(file, before, before)
}
const writePackage = (path: string, value: string) => {
  write(`${path}/package.json`, '{ "name": "part", "type": "module", "exports": "./one.js" }')
  write(`${path}/one.js`, `export const part = '${value}'`)
  write(`${path}/two.js`, `export const part = '${value}, two'`)
}

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'bundle-test-'))
  cacheDir = join(root, 'cache')
  entry = join(root, 'worker.ts')
  write('worker.ts', "import { part } from 'part'\nimport { own } from './own.ts'\nexport default { own, part }")
  write('own.ts', "export const own: string = 'own'")
  writePackage('store/part@1', 'first')
  mkdirSync(join(root, 'node_modules'))
  symlinkSync('../store/part@1', join(root, 'node_modules/part'))
})
afterEach(() => rmSync(root, { recursive: true }))

const bundleHere = (options: BundleOptions = {}) => bundle(entry, { cacheDir, ...options })
const listCached = () => readdirSync(cacheDir).map(name => join(cacheDir, name))
/** Marks the text of each cached bundle, to recognize it. */
const markCached = () => {
  for (const file of listCached()) {
    const cached = JSON.parse(readFileSync(file, 'utf8'))
    writeFileSync(file, JSON.stringify({ ...cached, text: 'cached' }))
  }
}

test('an unchanged worker is not bundled again', async () => {
  expect(await bundleHere()).toMatch(/part = "first"[\s\S]*own = "own"/)
  markCached()
  expect(await bundleHere()).toBe('cached')
})

describe('a new bundle is made', () => {
  test.each<readonly [what: string, change: () => void, expected: string]>([
    ['the entry', () => write('worker.ts', "export default 'replaced'"), 'replaced'],
    ['a module', () => write('own.ts', "export const own = 'changed'"), 'own = "changed"'],
    ['a file of a package', () => write('store/part@1/one.js', "export const part = 'patched'"), 'part = "patched"'],
    [
      'which file a package exports',
      () => write('store/part@1/package.json', '{ "name": "part", "exports": "./two.js" }'),
      'part = "first, two"',
    ],
    [
      'the version of a package',
      () => {
        writePackage('store/part@2', 'second')
        rmSync(join(root, 'node_modules/part'))
        symlinkSync('../store/part@2', join(root, 'node_modules/part'))
      },
      'part = "second"',
    ],
  ])('after a change of %s', async (_, change, expected) => {
    await bundleHere()
    markCached()
    change()
    expect(await bundleHere()).toContain(expected)
    markCached()
    expect(await bundleHere()).toBe('cached')
  })

  test('for each combination of options', async () => {
    write('own.ts', "export const own = 'own'\nexport const endWaits = () => {}")
    const all: BundleOptions[] = [{}, { loopbackHostsOnly: true }, { waitsModule: join(root, 'own.ts') }]
    const texts = new Set<string>()
    for (const options of all) {
      const text = await bundleHere(options)
      expect(text).not.toBe('cached')
      texts.add(text)
      markCached()
    }
    expect(texts.size).toBe(all.length)
    for (const options of all) expect(await bundleHere(options)).toBe('cached')
  })

  test('if the cached one is incomplete', async () => {
    const text = await bundleHere()
    for (const file of listCached()) writeFileSync(file, readFileSync(file, 'utf8').slice(0, -100))
    expect(await bundleHere()).toBe(text)
  })

  test('for each call if the cache cannot be written', async () => {
    write('cache', 'a file instead of a directory')
    const text = await bundleHere()
    write('own.ts', "export const own = 'changed'")
    expect([text, await bundleHere()]).toEqual([
      expect.stringContaining('own = "own"'),
      expect.stringContaining('own = "changed"'),
    ])
  })

  test('after a build during which an input changed', async () => {
    const file = join(root, 'own.ts')
    const later = new Date(Date.now() + 3_600_000)
    utimesSync(file, later, later)
    await bundleHere()
    expect(readdirSync(root)).not.toContain('cache')
  })
})

test('several processes can write it at the same time', async () => {
  const code = `
    import { createHash } from 'node:crypto'
    import { readdirSync, rmSync } from 'node:fs'
    import { bundle } from ${JSON.stringify(join(import.meta.dirname, 'bundle.ts'))}
    const cacheDir = ${JSON.stringify(cacheDir)}
    const texts = new Set()
    for (let round = 0; round < 5; round += 1) {
      texts.add(await bundle(${JSON.stringify(entry)}, { cacheDir }))
      for (const file of readdirSync(cacheDir)) if (file.endsWith('.json')) rmSync(cacheDir + '/' + file, { force: true })
    }
    process.stdout.write([...texts].join('next text'))`
  const run = () => promisify(execFile)(process.execPath, ['--input-type=module', '--eval', code])
  const outputs = await Promise.all([run(), run()])
  const text = await bundleHere()
  expect(outputs.map(({ stdout }) => stdout)).toEqual([text, text])
  expect(listCached()).toHaveLength(1)
})

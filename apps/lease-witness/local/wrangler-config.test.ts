import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { convertV4MiniflareOptions } from 'miniflare'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { readWranglerConfig } from './wrangler-config.ts'

const ours = resolve(import.meta.dirname, '../../../wrangler.toml')
const modules = [{ type: 'ESModule' as const, path: 'index.mjs', contents: '' }]

test('is to the runtime what Wrangler makes of the same file', async () => {
  vi.stubEnv('WRANGLER_WRITE_LOGS', 'false')
  const wrangler = await import('wrangler')
  const config = wrangler.unstable_readConfig({ config: ours })
  const { main, workerOptions } = wrangler.unstable_getMiniflareWorkerOptions(config)
  const { modulesRules: _, ...told } = workerOptions
  // It names each kind of binding that there is, with nothing in it.
  const theirs = Object.fromEntries(Object.entries(told).filter(([, value]) => Object.keys(value ?? {}).length > 0))
  const read = readWranglerConfig(ours)
  expect(read.main).toBe(main)
  expect(convertV4MiniflareOptions({ ...read.options, modules })).toEqual(
    convertV4MiniflareOptions({ ...theirs, name: config.name ?? '', bindings: config.vars, modules }),
  )
})

describe('of another worker', () => {
  let folder: string
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'described-'))
  })
  afterAll(() => rmSync(folder, { recursive: true }))

  const least = 'name = "w"\nmain = "w.mjs"\ncompatibility_date = "2026-11-01"\n'
  const read = (toml: string) => {
    writeFileSync(join(folder, 'wrangler.toml'), toml)
    return readWranglerConfig(join(folder, 'wrangler.toml'))
  }

  test('what is not there is nothing', () => {
    expect(read(least)).toMatchObject({
      main: join(folder, 'w.mjs'),
      options: { name: 'w', compatibilityFlags: [], bindings: {}, kvNamespaces: {}, durableObjects: {} },
    })
  })

  test('an object whose class no migration gives SQLite has none', () => {
    const { options } = read(`${least}[[durable_objects.bindings]]\nname = "A"\nclass_name = "B"\n`)
    expect(options.durableObjects).toEqual({ A: { className: 'B', useSQLite: false } })
  })

  test.each([
    ['a binding that the local run would not have', `${least}[[r2_buckets]]\nbinding = "A"\n`, 'r2_buckets'],
    ['a misspelt key of a binding', `${least}[[kv_namespaces]]\nbinding = "A"\nidd = "B"\n`, 'idd'],
    [
      'a migration that is something else',
      `${least}[[migrations]]\ntag = "v2"\ndeleted_classes = ["A"]\n`,
      'deleted_classes',
    ],
    ['a variable that is no text', `${least}[vars]\nN = 1\n`, 'vars.N'],
    ['no name', least.replace(/name.*\n/, ''), 'name'],
    ['no TOML', 'name = ', 'wrangler.toml'],
  ])('%s is refused by name', (_what, toml, named) => {
    expect(() => read(toml)).toThrow(named)
  })
})

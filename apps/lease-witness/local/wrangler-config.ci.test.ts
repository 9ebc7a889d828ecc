import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { convertV4MiniflareOptions } from 'miniflare'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { readWranglerConfig } from './wrangler-config.ts'

const projectConfig = resolve(import.meta.dirname, '../../../wrangler.toml')
const modules = [{ type: 'ESModule' as const, path: 'index.mjs', contents: '' }]

test('gives the runtime the same options as Wrangler', async () => {
  vi.stubEnv('WRANGLER_WRITE_LOGS', 'false')
  const wrangler = await import('wrangler')
  const config = wrangler.unstable_readConfig({ config: projectConfig })
  const { main, workerOptions } = wrangler.unstable_getMiniflareWorkerOptions(config)
  const { modulesRules: _, ...listed } = workerOptions
  // Wrangler lists every kind of binding, also if it is empty.
  const theirs = Object.fromEntries(Object.entries(listed).filter(([, value]) => Object.keys(value ?? {}).length > 0))
  const read = readWranglerConfig(projectConfig)
  expect(read.main).toBe(main)
  expect(convertV4MiniflareOptions({ ...read.options, modules })).toEqual(
    convertV4MiniflareOptions({ ...theirs, name: config.name ?? '', bindings: config.vars, modules }),
  )
})

describe('another wrangler.toml', () => {
  let directory: string
  beforeAll(() => {
    directory = mkdtempSync(join(tmpdir(), 'wrangler-config-'))
  })
  afterAll(() => rmSync(directory, { recursive: true }))

  const minimal = 'name = "w"\nmain = "w.mjs"\ncompatibility_date = "2026-11-01"\n'
  const read = (toml: string) => {
    writeFileSync(join(directory, 'wrangler.toml'), toml)
    return readWranglerConfig(join(directory, 'wrangler.toml'))
  }

  test('absent settings are empty', () => {
    expect(read(minimal)).toMatchObject({
      main: join(directory, 'w.mjs'),
      options: { name: 'w', compatibilityFlags: [], bindings: {}, kvNamespaces: {}, durableObjects: {} },
    })
  })

  test('a Durable Object has no SQLite unless a migration adds it', () => {
    const { options } = read(`${minimal}[[durable_objects.bindings]]\nname = "A"\nclass_name = "B"\n`)
    expect(options.durableObjects).toEqual({ A: { className: 'B', useSQLite: false } })
  })

  test.each([
    ['a binding that the local run does not support', `${minimal}[[r2_buckets]]\nbinding = "A"\n`, 'r2_buckets'],
    ['a misspelt key of a binding', `${minimal}[[kv_namespaces]]\nbinding = "A"\nidd = "B"\n`, 'idd'],
    [
      'a migration of another kind',
      `${minimal}[[migrations]]\ntag = "v2"\ndeleted_classes = ["A"]\n`,
      'deleted_classes',
    ],
    ['a variable that is not a string', `${minimal}[vars]\nN = 1\n`, 'vars.N'],
    ['no name', minimal.replace(/name.*\n/, ''), 'name'],
    ['invalid TOML', 'name = ', 'wrangler.toml'],
  ])('%s: the error names it', (_what, toml, named) => {
    expect(() => read(toml)).toThrow(named)
  })
})

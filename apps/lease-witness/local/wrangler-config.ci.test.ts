import { globSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { convertV4MiniflareOptions } from 'miniflare'
import { parse } from 'smol-toml'
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

  const minimal = 'name = "w"\nmain = "w.mjs"\ncompatibility_date = "2026-05-01"\n'
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

  test('a variable can be any JSON, and a migration can remove a class', () => {
    const { options } = read(`${minimal}[vars]\nN = [1]\n[[migrations]]\ntag = "v2"\ndeleted_classes = ["A"]\n`)
    expect(options.bindings).toEqual({ N: [1] })
  })

  test('accepts every setting that Wrangler has, and every block that the documentation adds', async () => {
    const schemaFile = new URL('../config-schema.json', import.meta.resolve('wrangler'))
    const settings = Object.keys(JSON.parse(readFileSync(schemaFile, 'utf8')).definitions.RawConfig.properties)
    const others = settings.filter(name => !Object.hasOwn(parse(readFileSync(projectConfig, 'utf8')), name))
    expect(others).toEqual(expect.arrayContaining(['account_id', 'routes', 'env', 'limits', 'placement', 'logpush']))
    for (const name of others) expect(() => read(`"${name}" = [{ a = 1 }]\n${minimal}`), name).not.toThrow()

    const docs = resolve(import.meta.dirname, '../../../docs')
    const pages = globSync('**/*.md', { cwd: docs }).map(page => readFileSync(join(docs, page), 'utf8'))
    const blocks = pages.flatMap(page =>
      Array.from(page.matchAll(/^```toml\n([\s\S]*?)^```$/gm), ([, toml = '']) => toml),
    )
    expect(blocks.length).toBeGreaterThan(1)
    const original = readFileSync(projectConfig, 'utf8')
    for (const block of blocks) expect(() => read(`${original}\n${block}`), block).not.toThrow()
  })

  test.each([
    ['a misspelt setting', `compatibility_flag = ["a"]\n${minimal}`, 'compatibility_flag'],
    ['a binding without its name', `${minimal}[[kv_namespaces]]\nid = "B"\n`, 'binding'],
    ['no name', minimal.replace(/name.*\n/, ''), 'name'],
    ['invalid TOML', 'name = ', 'wrangler.toml'],
  ])('%s: the error names it', (_what, toml, named) => {
    expect(() => read(toml)).toThrow(named)
  })
})

import { readFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { expect, test } from 'vitest'
import { repository } from './support/module-fixture.ts'
import { withTerraform } from './support/terraform.ts'
import { createWitnessFixture } from './support/witness-fixture.ts'

type Scalar = string | boolean | number
type TomlTable = { [key: string]: Scalar | Scalar[] | TomlTable | TomlTable[] }

/**
 * The subset of TOML in wrangler.toml: tables, arrays of tables, and one-line values that are valid JSON. Anything else is
 * an error.
 */
function parseToml(text: string): TomlTable {
  const root: TomlTable = {}
  let table = root
  for (const [index, line] of text.split('\n').entries()) {
    const text = line.trim()
    if (text === '' || text.startsWith('#')) continue
    const arrayName = /^\[\[([\w.]+)\]\]$/.exec(text)?.[1]
    const tableName = /^\[([\w.]+)\]$/.exec(text)?.[1]
    const pair = /^(\w+)\s*=\s*(.+?)(\s+#[^"]*)?$/.exec(text)
    if (arrayName) table = append(root, arrayName.split('.'))
    else if (tableName) table = descend(root, tableName.split('.'))
    else if (pair?.[1] && pair[2]) table[pair[1]] = readValue(pair[2], index + 1)
    else throw new Error(`line ${index + 1}: unsupported TOML`)
  }
  return root
}

function readValue(text: string, line: number): Scalar | Scalar[] {
  try {
    return JSON.parse(text) as Scalar | Scalar[]
  } catch {
    throw new Error(`line ${line}: unsupported TOML value`)
  }
}

function descend(table: TomlTable, path: readonly string[]): TomlTable {
  return path.reduce((at, key) => {
    at[key] ??= {}
    const next = at[key]
    if (typeof next !== 'object' || Array.isArray(next)) throw new Error(`${key} is not a table`)
    return next
  }, table)
}

function append(root: TomlTable, path: readonly string[]): TomlTable {
  const parent = descend(root, path.slice(0, -1))
  const key = path.at(-1) ?? ''
  const created: TomlTable = {}
  const existing = parent[key]
  parent[key] = Array.isArray(existing) ? ([...existing, created] as TomlTable[]) : [created]
  return created
}

const wrangler = parseToml(readFileSync(join(repository, 'wrangler.toml'), 'utf8'))

test('parseToml reads tables, arrays of tables and values, and rejects other syntax', () => {
  const text = '# a\nname = "x # y" # z\n[[m]]\ntag = "v1"\n[[m]]\nflags = ["a", "b"]\n[o.l]\non = false\n'
  expect(parseToml(text)).toEqual({
    name: 'x # y',
    m: [{ tag: 'v1' }, { flags: ['a', 'b'] }],
    o: { l: { on: false } },
  })
  expect(() => parseToml('a = { b = 1 }')).toThrow('line 1')
  expect(() => parseToml('a = [\n1]')).toThrow('line 1')
})

withTerraform('the module and wrangler.toml', () => {
  test('describe the same script', async () => {
    const { plan } = await createWitnessFixture()
    const { resource_changes } = await plan()
    const after = (type: string) => resource_changes.find(({ address }) => address.startsWith(`${type}.`))?.change.after
    const script = after('cloudflare_workers_script')
    const subdomain = after('cloudflare_workers_script_subdomain')
    const bindings = script?.bindings as {
      name: string
      type: string
      text: string | null
      class_name: string | null
    }[]
    const of = (type: string) => bindings.filter(binding => binding.type === type)

    expect(script).toMatchObject({
      script_name: wrangler.name,
      main_module: basename(String(wrangler.main)).replace(/\.ts$/, '.js'),
      compatibility_date: wrangler.compatibility_date,
      compatibility_flags: wrangler.compatibility_flags,
      observability: wrangler.observability,
    })
    expect(of('kv_namespace').map(({ name }) => ({ binding: name, id: expect.any(String) }))).toEqual(
      wrangler.kv_namespaces,
    )
    expect({ bindings: of('durable_object_namespace').map(({ name, class_name }) => ({ name, class_name })) }).toEqual(
      wrangler.durable_objects,
    )
    expect(Object.fromEntries(of('plain_text').map(({ name, text }) => [name, text]))).toEqual(wrangler.vars)
    expect(of('secret_text').map(({ name }) => name)).toEqual(['TOKEN_POLICIES'])
    const { new_tag: tag, new_sqlite_classes } = (script?.migrations ?? {}) as Record<string, unknown>
    expect([{ tag, new_sqlite_classes }]).toEqual(wrangler.migrations)
    expect([subdomain?.enabled, subdomain?.previews_enabled]).toEqual([wrangler.workers_dev, wrangler.preview_urls])
  })

  test('wrangler.toml has only settings that the test above compares', () => {
    expect(Object.keys(wrangler).toSorted()).toEqual([
      'compatibility_date',
      'compatibility_flags',
      'durable_objects',
      'kv_namespaces',
      'main',
      'migrations',
      'name',
      'observability',
      'preview_urls',
      'send_metrics', // a setting of Wrangler, not of the script
      'vars',
      'workers_dev',
    ])
  })
})

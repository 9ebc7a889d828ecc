import { readFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { expect, test } from 'vitest'
import { repository } from './support/module-fixture.ts'
import { withTerraform } from './support/with-terraform.ts'
import { createWitnessFixture } from './support/witness-fixture.ts'
import { parseToml } from './support/wrangler-toml.ts'

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

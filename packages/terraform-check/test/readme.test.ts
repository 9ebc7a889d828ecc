import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { withTerraform } from './fixtures/terraform-test.ts'
import { mark, repository, token, workspace } from './fixtures/workspace.ts'

const readme = readFileSync(join(repository, 'infra/lease-witness/README.md'), 'utf8')
const [usage = '', imports = ''] = [...readme.matchAll(/```hcl\n(.*?)```/gs)].map(([, block]) => block ?? '')
/** The one of the example. */
const namespaceId = 'fedcba9876543210'.repeat(2)

/** The names in the first column of the README's table with this heading. */
const listed = (heading: string): string[] => {
  const table = readme.slice(readme.indexOf(`| ${heading} |`)).split('\n\n')[0] ?? ''
  const cells = table
    .split('\n')
    .slice(2)
    .map(row => row.split('|')[1] ?? '')
  return cells.flatMap(cell => [...cell.matchAll(/`(\w+)`/g)].map(([, name]) => name ?? '')).toSorted()
}

const declared = (file: string, kind: string): string[] => {
  const text = readFileSync(join(repository, 'infra/lease-witness', file), 'utf8')
  return [...text.matchAll(new RegExp(`^${kind} "(\\w+)"`, 'gm'))].map(([, name]) => name ?? '').toSorted()
}

test('its tables have every input and every output', () => {
  expect(listed('input')).toEqual(declared('variables.tf', 'variable'))
  expect(listed('output')).toEqual(declared('outputs.tf', 'output'))
})

test('it names the versions that the module asks for', () => {
  const text = readFileSync(join(repository, 'infra/lease-witness/versions.tf'), 'utf8')
  const asked = [...text.matchAll(/version\s+= "([^"]+)"/g)].map(([, version]) => version)
  expect(asked).toEqual(['>= 1.6.0', '~> 5.14'])
  expect(usage).toContain(`version = "${asked[1]}"`)
  expect(readme).toContain('Terraform 1.6 or later')
})

withTerraform('the README of the module', () => {
  test('its example applies, with the tokens from the environment and the script where the build leaves it', async () => {
    const { account, environment, build, apply, outputs, terraform } = await workspace({ root: usage })
    build('// built\n')
    environment.TF_VAR_lease_witness_tokens = JSON.stringify([token('one')])
    await apply()
    expect(await outputs()).toEqual({ lease_witness_url: 'https://lease-witness.acme.workers.dev' })
    expect(account.script('lease-witness').content).toBe('// built\n')
    expect((await terraform('plan', '-detailed-exitcode')).code).toBe(0)
  })

  test('its imports adopt what wrangler made, in place', async () => {
    const root = `${usage}${imports}`.replace('applied_migration_tag = null', 'applied_migration_tag = "v1"')
    const { account, environment, build, plan, apply, terraform } = await workspace({ root })
    account.namespaces.set(namespaceId, 'lease-witness')
    account.upload('lease-witness', {
      content: '// by wrangler\n',
      bindings: [
        { name: 'LEASES', type: 'durable_object_namespace', class_name: 'LeaseObject', namespace_id: 'objects' },
        { name: 'OPENOVA_LEASES', type: 'kv_namespace', namespace_id: namespaceId },
        { name: 'BEARER_TOKENS_CSV', type: 'secret_text', text: `${mark}-of-wrangler` },
      ],
      migration: { oldTag: '', newTag: 'v1', newClasses: ['LeaseObject'] },
    })
    build('// built\n')
    environment.TF_VAR_lease_witness_tokens = JSON.stringify([token('one')])
    const actions = Object.fromEntries(
      (await plan()).resource_changes.map(({ address, change }) => [address.split('.')[2], change.actions.join()]),
    )
    expect(actions).toEqual({
      cloudflare_workers_kv_namespace: 'no-op',
      cloudflare_workers_script: 'update',
      cloudflare_workers_script_subdomain: 'create',
    })
    await apply()
    expect(account.script('lease-witness')).toMatchObject({ content: '// built\n', migrationTag: 'v1' })
    expect([...account.namespaces.keys()]).toEqual([namespaceId])
    expect((await terraform('plan', '-detailed-exitcode')).code).toBe(0)
  })
})

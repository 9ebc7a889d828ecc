import { expect, test } from 'vitest'
import { SECRET_MARK } from './fixtures/module-fixture.ts'
import { readHclBlocks } from './fixtures/readme.ts'
import { withTerraform } from './fixtures/with-terraform.ts'
import { createWitnessFixture, token } from './fixtures/witness-fixture.ts'

const [usage = '', importBlocks = ''] = readHclBlocks('lease-witness')
/** The id in the example. */
const namespaceId = 'fedcba9876543210'.repeat(2)

withTerraform('the README of the lease-witness module', () => {
  test('has an example that can be applied with tokens from the environment and the built script', async () => {
    const { account, environment, build, apply, outputs, terraform } = await createWitnessFixture({ rootModule: usage })
    build('// built\n')
    environment.TF_VAR_lease_witness_tokens = JSON.stringify([token('one')])
    await apply()
    expect(await outputs()).toEqual({ lease_witness_url: 'https://lease-witness.acme.workers.dev' })
    expect(account.script('lease-witness').content).toBe('// built\n')
    expect((await terraform('plan', '-detailed-exitcode')).code).toBe(0)
  })

  test('has import blocks that import the resources of a Wrangler deployment in place', async () => {
    const root = `${usage}${importBlocks}`.replace('applied_migration_tag = null', 'applied_migration_tag = "v1"')
    const { account, environment, build, plan, apply, terraform } = await createWitnessFixture({ rootModule: root })
    account.namespaces.set(namespaceId, 'lease-witness')
    account.upload('lease-witness', {
      content: '// by wrangler\n',
      bindings: [
        { name: 'LEASES', type: 'durable_object_namespace', class_name: 'LeaseObject', namespace_id: 'objects' },
        { name: 'OPENOVA_LEASES', type: 'kv_namespace', namespace_id: namespaceId },
        { name: 'BEARER_TOKENS_CSV', type: 'secret_text', text: `${SECRET_MARK}-of-wrangler` },
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

import { expect, test } from 'vitest'
import { examples } from './fixtures/readme.ts'
import { mark } from './fixtures/stage.ts'
import { withTerraform } from './fixtures/terraform-test.ts'
import { token, workspace } from './fixtures/workspace.ts'

const [usage = '', imports = ''] = examples('lease-witness')
/** The one of the example. */
const namespaceId = 'fedcba9876543210'.repeat(2)

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

import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { usesRealProviders } from '@pool/test-kit/terraform/real-providers.ts'
import { expect, test } from 'vitest'
import { Account } from './support/account.ts'
import { changedPaths, collapseWhitespace, replaceInFile } from './support/module-fixture.ts'
import { withTerraform } from './support/terraform.ts'
import { createWitnessFixture, otherAccountId, zoneId } from './support/witness-fixture.ts'

const script = 'cloudflare_workers_script.witness'
const withDomain = { custom_domain: { hostname: 'witness.example.com', zone_id: zoneId } }

withTerraform('the first apply and later ones', () => {
  test('the first apply creates the script with its migration', async () => {
    const { account, requests, apply } = await createWitnessFixture()
    await apply()
    const changes = [
      'POST /storage/kv/namespaces',
      'PUT /workers/scripts/lease-witness',
      'POST /workers/scripts/lease-witness/subdomain',
    ]
    expect(requests.filter(request => !request.startsWith('GET '))).toEqual(
      usesRealProviders ? changes.map(change => `${change} 200`) : [],
    )
    expect(account.script('lease-witness')).toMatchObject({
      migrationTag: 'v1',
      classes: new Set(['LeaseObject']),
      content: '// first\n',
      uploads: 1,
    })
    expect([...account.namespaces.values()]).toEqual(['lease-witness'])
  })

  test.each([
    ['reports the settings of traces', true],
    ['reports only what was uploaded', false],
  ])(
    'the second apply only removes the applied migration; then the plan is empty: the API %s',
    async (_, reportsTraces) => {
      const { account, set, terraform, plan, apply } = await createWitnessFixture({
        account: new Account({ reportsTraces }),
      })
      set(withDomain)
      await apply()
      expect(changedPaths(await plan())).toEqual([`${script}.migrations`])
      await apply()
      for (const command of ['plan', 'apply'] as const) {
        const { code, output } = await terraform(
          command,
          '-no-color',
          ...(command === 'plan' ? ['-detailed-exitcode'] : []),
        )
        expect(code, output).toBe(0)
        expect(output).toContain('No changes')
      }
      expect(account.script('lease-witness')).toMatchObject({ uploads: 2, migrationTag: 'v1' })
    },
  )

  test('a new script is uploaded without the migration, also in the second apply, and keeps its objects', async () => {
    const { account, terraform, build, plan, apply, outputs } = await createWitnessFixture()
    await apply()
    const { namespace_id } = await outputs()
    for (const content of ['// second\n', '// third\n', '// first\n']) {
      build(content)
      const { resource_changes } = await plan()
      expect(resource_changes.flatMap(({ change }) => change.actions)).not.toContain('delete')
      await apply()
      expect(account.script('lease-witness')).toMatchObject({ content, migrationTag: 'v1' })
    }
    expect((await outputs()).namespace_id).toBe(namespace_id)
    expect((await terraform('plan', '-detailed-exitcode')).code).toBe(0)
  })

  test('an apply that failed after the upload is completed by the next one', async () => {
    const { account, set, apply, terraform } = await createWitnessFixture()
    account.rejectsDomains = true
    set(withDomain)
    const { code, output } = await terraform('apply', '-auto-approve', '-no-color')
    expect(code, output).toBe(1)
    expect(output).toContain('403 Forbidden')
    expect(account.script('lease-witness').migrationTag).toBe('v1')
    account.rejectsDomains = false
    await apply()
    expect((await terraform('plan', '-detailed-exitcode')).code).toBe(0)
  })

  test('a migration that is sent again is rejected, nothing is lost, and leaving it out repairs the next apply', async () => {
    const { account, directory, build, apply, terraform } = await createWitnessFixture()
    const file = join(directory, 'script.tf')
    const rule = 'migrations = local.applied_migration_tag == local.migration_tag ? null :'
    await apply()
    replaceInFile(file, rule, 'migrations = local.applied_migration_tag == "forgotten" ? null :')
    const deployed = account.script('lease-witness')
    build('// second\n')
    const { code, output } = await terraform('apply', '-auto-approve', '-no-color')
    expect(code, output).toBe(1)
    expect(output).toContain('412 Precondition Failed')
    expect(output).toContain('10079')
    expect(account.script('lease-witness')).toBe(deployed)
    replaceInFile(file, 'migrations = local.applied_migration_tag == "forgotten" ? null :', rule)
    await apply()
    expect(account.script('lease-witness')).toMatchObject({ content: '// second\n', migrationTag: 'v1' })
    expect((await terraform('plan', '-detailed-exitcode')).code).toBe(0)
  })

  test('a script without Durable Objects, such as an earlier witness, gets the migration', async () => {
    const { account, apply } = await createWitnessFixture()
    await account.upload('lease-witness', { content: '// without objects\n', bindings: [], migration: null })
    await apply()
    expect(account.script('lease-witness')).toMatchObject({ content: '// first\n', migrationTag: 'v1' })
  })

  test('the migrations of other scripts have no effect', async () => {
    const { account, apply } = await createWitnessFixture()
    const migration = { oldTag: '', newTag: 'v1', newClasses: ['Other'] }
    await account.upload('other', { content: '// other\n', bindings: [], migration })
    await apply()
    expect(account.script('lease-witness').migrationTag).toBe('v1')
  })

  test('a migration that this version of the module does not have is rejected', async () => {
    const { account, terraform } = await createWitnessFixture()
    const migration = { oldTag: '', newTag: 'v2', newClasses: ['LeaseObject'] }
    await account.upload('lease-witness', { content: '// newer\n', bindings: [], migration })
    const { code, output } = await terraform('apply', '-auto-approve', '-no-color')
    expect(code).toBe(1)
    expect(collapseWhitespace(output)).toContain('use the version that applied it')
    expect(account.script('lease-witness').content).toBe('// newer\n')
  })

  test('a plan repairs a deleted secret and other content, but does not see another KV namespace', async () => {
    const { account, apply, terraform } = await createWitnessFixture()
    await apply()
    await apply()
    const deployed = account.script('lease-witness')
    const isEmpty = async () => (await terraform('plan', '-detailed-exitcode')).code === 0
    const changes = [
      { bindings: deployed.bindings.filter(({ type }) => type !== 'secret_text') },
      { content: '// by another tool\n' },
    ]
    for (const change of changes) {
      account.scripts.set('lease-witness', { ...deployed, ...change })
      expect(await isEmpty()).toBe(false)
      await apply()
      expect(account.script('lease-witness')).toMatchObject({ content: '// first\n', bindings: deployed.bindings })
    }
    const bindings = deployed.bindings.map(binding =>
      binding.type === 'kv_namespace' ? { ...binding, namespace_id: 'another' } : binding,
    )
    account.scripts.set('lease-witness', { ...deployed, bindings })
    expect(await isEmpty()).toBe(true)
  })

  test('without a built script nothing is created', async () => {
    const { account, directory, terraform } = await createWitnessFixture()
    rmSync(join(directory, 'built.js'))
    const { code, output } = await terraform('apply', '-auto-approve', '-no-color')
    expect(code).toBe(1)
    expect(collapseWhitespace(output)).toContain(
      'No built script at built.js: run npx -y pnpm@12 --filter lease-witness build',
    )
    expect(account.namespaces.size).toBe(0)
  })

  test.each([
    ['destroy', ['destroy', '-auto-approve'], {}, 'script.witness'],
    [
      'replacing the script',
      ['apply', '-auto-approve', '-replace=cloudflare_workers_script.witness'],
      {},
      'script.witness',
    ],
    [
      'replacing the namespace',
      ['apply', '-auto-approve', '-replace=cloudflare_workers_kv_namespace.leases'],
      {},
      'kv_namespace.leases',
    ],
    ['another name', ['apply', '-auto-approve'], { script_name: 'other' }, 'script.witness'],
    ['another account', ['apply', '-auto-approve'], { account_id: otherAccountId }, 'kv_namespace.leases'],
  ])('%s is rejected, because it would delete the leases', async (_, command, variables, resource) => {
    const { account, terraform, set, apply } = await createWitnessFixture()
    await apply()
    set(variables)
    const { code, output } = await terraform(...command, '-no-color')
    expect(code, output).toBe(1)
    const address = `cloudflare_workers_${resource.replaceAll('.', '\\.')}`
    expect(collapseWhitespace(output)).toMatch(
      new RegExp(`Resource (?:instance )?${address} has (?:lifecycle\\.)?prevent_destroy set`),
    )
    expect([...account.scripts.keys()]).toEqual(['lease-witness'])
    expect(account.namespaces.size).toBe(1)
  })
})

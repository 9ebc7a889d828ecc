import { execFile, spawnSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { parseTokenPolicies } from 'lease-witness/src/http/domain/token-policies.ts'
import { expect, test } from 'vitest'
import { SECRET_MARK } from './support/module-fixture.ts'
import { readHclBlocks, readShellBlocks } from './support/readme.ts'
import { binary, isolatedEnv, withTerraform } from './support/terraform.ts'
import { createWitnessFixture, hashToken, token } from './support/witness-fixture.ts'

const [usage = '', policies = '', importBlocks = '', importedJurisdiction = ''] = readHclBlocks('lease-witness')
const onePolicy = { one: { token: hashToken(token('one')), access: 'write' } }
const [summary = ''] = readShellBlocks('lease-witness').filter(block => block.includes('import.plan'))
/** The command in the README uses both. */
const canSummarize = binary === 'terraform' && spawnSync('jq', ['--version']).status === 0
/** The id in the example. */
const namespaceId = 'fedcba9876543210'.repeat(2)

withTerraform('the README of the lease-witness module', () => {
  const exampleVariables = { TF_VAR_lease_witness_policies: JSON.stringify(onePolicy) }

  test('has an example that can be applied with policies from the environment and the built script', async () => {
    const { account, environment, build, apply, outputs, terraform } = await createWitnessFixture({ rootModule: usage })
    build('// built\n')
    Object.assign(environment, exampleVariables)
    await apply()
    await apply()
    expect(await outputs()).toEqual({ lease_witness_url: 'https://lease-witness.acme.workers.dev' })
    expect(account.script('lease-witness').content).toBe('// built\n')
    expect((await terraform('plan', '-detailed-exitcode')).code).toBe(0)
  })

  test('has an example of a policy with every field', async () => {
    const { account, directory, set, apply } = await createWitnessFixture()
    set({ token_policies: undefined })
    writeFileSync(join(directory, 'policies.auto.tfvars'), policies)
    await apply()
    const { text } = account.script('lease-witness').bindings.find(({ name }) => name === 'TOKEN_POLICIES') ?? {}
    expect(parseTokenPolicies(String(text))).toMatchObject({ policies: [{ name: 'region-a' }], errors: [] })
    expect(JSON.parse(String(text))).toEqual([
      {
        name: 'region-a',
        token: hashToken('test'),
        access: 'write',
        slots: ['eu/'],
        holders: ['region-a-*'],
        expiresAt: '2027-01-31T00:00:00Z',
        maxRequestsPerMinute: 600,
      },
    ])
  })

  test.each([
    ['without a jurisdiction', '', ''],
    ['with one', 'jurisdiction = "eu"', importedJurisdiction],
  ])('has import blocks that import a Wrangler deployment in place: %s', async (_, input, block) => {
    const root = `${usage}${importBlocks}${block}`.replace('account_id ', `${input}\n  account_id `)
    const { account, directory, environment, build, plan, apply, terraform } = await createWitnessFixture({
      rootModule: root,
    })
    account.namespaces.set(namespaceId, 'lease-witness')
    await account.upload('lease-witness', {
      content: '// by wrangler\n',
      bindings: [
        { name: 'LEASES', type: 'durable_object_namespace', class_name: 'LeaseObject', namespace_id: 'objects' },
        { name: 'OPENOVA_LEASES', type: 'kv_namespace', namespace_id: namespaceId },
        { name: 'BEARER_TOKENS_CSV', type: 'secret_text', text: `${SECRET_MARK}-of-wrangler` },
      ],
      migration: { oldTag: '', newTag: 'v1', newClasses: ['LeaseObject'] },
    })
    build('// built\n')
    Object.assign(environment, exampleVariables)
    const actions = Object.fromEntries(
      (await plan()).resource_changes.map(({ address, change }) => [address.split('.')[2], change.actions.join()]),
    )
    expect(actions).toEqual({
      cloudflare_workers_kv_namespace: 'no-op',
      cloudflare_workers_script: 'update',
      cloudflare_workers_script_subdomain: 'create',
      terraform_data: block ? 'no-op' : 'create',
    })
    if (canSummarize) {
      // Asynchronous, because the double of the provider runs in this process.
      const { stdout: output } = await promisify(execFile)('sh', ['-ec', summary], {
        cwd: directory,
        ...isolatedEnv(environment),
      })
      const lines = output.trim().split('\n').toSorted()
      expect(lines.map(line => line.replace(/^module\.lease_witness\.(\w+)\.\w+: /, '$1 ').trim())).toEqual([
        'cloudflare_workers_kv_namespace import, no-op',
        expect.stringMatching(
          /^cloudflare_workers_script import, update (?=.*\bbindings\b)(?=.*\bcontent_file\b)[\w ]+$/,
        ),
        'cloudflare_workers_script_subdomain create',
        block ? 'terraform_data import, no-op' : 'terraform_data create',
      ])
    }
    await apply()
    expect(account.script('lease-witness')).toMatchObject({ content: '// built\n', migrationTag: 'v1' })
    expect([...account.namespaces.keys()]).toEqual([namespaceId])
    expect((await terraform('plan', '-detailed-exitcode')).code).toBe(0)
  })
})

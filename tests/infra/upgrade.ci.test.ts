import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { readState } from './support/module-fixture.ts'
import { changedPaths } from './support/plan.ts'
import { withTerraform } from './support/with-terraform.ts'
import { createWitnessFixture, hashToken, token, type WitnessFixture, zoneId } from './support/witness-fixture.ts'

interface State {
  serial: number
  resources: { type: string; instances: { attributes: Record<string, unknown> }[] }[]
}

/** Written by the module as it was before token policies, with the schema versions of the provider 5.14. */
const previousState = readFileSync(new URL('./support/previous-module-state.json', import.meta.url), 'utf8')

/** An account and a state as the previous module left them; `recorded`: its second step was completed. */
async function createPreviousDeployment(recorded: boolean): Promise<WitnessFixture> {
  const fixture = await createWitnessFixture()
  const state = JSON.parse(previousState) as State
  const find = (type: string) => {
    const found = state.resources.find(resource => resource.type === type)?.instances[0]?.attributes
    if (!found) throw new Error(`no ${type} in the state`)
    return found
  }
  const script = find('cloudflare_workers_script')
  if (recorded) delete script.migrations
  fixture.account.namespaces.set(String(find('cloudflare_workers_kv_namespace').id), 'lease-witness')
  await fixture.account.upload('lease-witness', {
    content: '// first\n',
    bindings: script.bindings as never,
    migration: { oldTag: '', newTag: 'v1', newClasses: ['LeaseObject'] },
    observability: script.observability as never,
  })
  fixture.account.subdomains.set('lease-witness', { enabled: true, previews: false })
  const { id, hostname } = find('cloudflare_workers_custom_domain')
  fixture.account.domains.set(String(id), { hostname: String(hostname), zoneId, service: 'lease-witness' })
  writeFileSync(join(fixture.directory, 'terraform.tfstate'), JSON.stringify(state))
  return fixture
}

const address = { workers_dev_subdomain: 'acme', custom_domain: { hostname: 'witness.example.com', zone_id: zoneId } }
const bearer = { token_policies: {}, bearer_tokens: [token('one')] }

withTerraform('an upgrade from the state of the previous module', () => {
  test.each([
    ['with the migration recorded', true],
    ['with the migration still in the state', false],
  ])('updates the script in place and keeps everything else: %s', async (_, recorded) => {
    const { account, build, set, plan, apply, terraform } = await createPreviousDeployment(recorded)
    const [namespaces, domains] = [new Map(account.namespaces), new Map(account.domains)]
    build('// new\n')
    set({ ...address, ...bearer })
    const actions = (await plan()).resource_changes.map(({ address, change }) => [address, change.actions.join()])
    expect(Object.fromEntries(actions)).toEqual({
      'cloudflare_workers_custom_domain.witness[0]': 'no-op',
      'cloudflare_workers_kv_namespace.leases': 'no-op',
      'cloudflare_workers_script.witness': 'update',
      'cloudflare_workers_script_subdomain.witness': 'no-op',
      'terraform_data.jurisdiction': 'create',
    })
    await apply()
    expect(account.script('lease-witness')).toMatchObject({ content: '// new\n', migrationTag: 'v1', uploads: 2 })
    expect([account.namespaces, account.domains]).toEqual([namespaces, domains])
    expect((await terraform('plan', '-detailed-exitcode')).code).toBe(0)
  })

  test('the tokens move to policies in two applies, and the state then contains none', async () => {
    const { account, directory, set, plan, apply } = await createPreviousDeployment(true)
    const policies = { one: { token: hashToken(token('one')), access: 'write' } }
    set({ ...address, bearer_tokens: [token('one')], token_policies: policies })
    await apply()
    const secrets = () =>
      account
        .script('lease-witness')
        .bindings.filter(({ type }) => type === 'secret_text')
        .map(({ name }) => name)
    expect(secrets()).toEqual(['BEARER_TOKENS_CSV', 'TOKEN_POLICIES'])
    expect(readState(directory)).toContain(token('one'))
    set({ ...address, token_policies: policies })
    await apply()
    expect(secrets()).toEqual(['TOKEN_POLICIES'])
    expect(readState(directory)).not.toContain(token('one'))
    expect(changedPaths(await plan())).toEqual([])
  })
})

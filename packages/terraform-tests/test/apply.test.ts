import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { collapseWhitespace, replaceInFile } from './fixtures/module-fixture.ts'
import { withTerraform } from './fixtures/with-terraform.ts'
import { createWitnessFixture } from './fixtures/witness-fixture.ts'

const migrationRecorded = { applied_migration_tag: 'v1' }
const reminder = 'set applied_migration_tag = "v1"'

withTerraform('the first apply and later ones', () => {
  test('the first apply creates the script with its migration and names the next step; the next plan is empty', async () => {
    const { account, terraform, apply } = await createWitnessFixture()
    expect(collapseWhitespace(await apply())).toContain(reminder)
    expect(account.script('lease-witness')).toMatchObject({
      migrationTag: 'v1',
      classes: new Set(['LeaseObject']),
      content: '// first\n',
    })
    expect([...account.namespaces.values()]).toEqual(['lease-witness'])
    const second = await terraform('plan', '-no-color', '-detailed-exitcode')
    expect(second.code, second.output).toBe(0)
    expect(second.output).toContain('No changes')
  })

  test('after the migration is recorded, a new script is uploaded without a reminder and keeps its objects', async () => {
    const { account, terraform, set, build, plan, apply, outputs } = await createWitnessFixture()
    await apply()
    const { namespace_id } = await outputs()
    set(migrationRecorded)
    const { resource_changes } = await plan()
    expect(resource_changes.flatMap(({ change }) => change.actions)).not.toContain('delete')
    const output = await apply()
    expect(collapseWhitespace(output)).not.toContain(reminder)
    build('// second\n')
    await apply()
    expect(account.script('lease-witness')).toMatchObject({ content: '// second\n', migrationTag: 'v1' })
    expect((await outputs()).namespace_id).toBe(namespace_id)
    expect((await terraform('plan', '-detailed-exitcode')).code).toBe(0)
  })

  test('one apply can record the migration and upload a new script', async () => {
    const { account, set, build, apply } = await createWitnessFixture()
    await apply()
    set(migrationRecorded)
    build('// second\n')
    await apply()
    expect(account.script('lease-witness').content).toBe('// second\n')
  })

  test('without the recorded migration a new script is rejected with 412; recording it fixes this', async () => {
    const { account, terraform, set, build, apply } = await createWitnessFixture()
    await apply()
    build('// second\n')
    const { code, output } = await terraform('apply', '-auto-approve', '-no-color')
    expect(code).toBe(1)
    expect(output).toContain('412')
    expect(collapseWhitespace(output)).toContain(reminder)
    expect(account.script('lease-witness').content).toBe('// first\n')
    set(migrationRecorded)
    await apply()
    expect(account.script('lease-witness').content).toBe('// second\n')
  })

  test('ignore_changes does not help: the provider sends the migration in the state again', async () => {
    const { terraform, set, build, apply } = await createWitnessFixture({
      change: directory =>
        replaceInFile(
          join(directory, 'script.tf'),
          '    prevent_destroy = true',
          '    prevent_destroy = true\n    ignore_changes = [migrations]',
        ),
    })
    await apply()
    set(migrationRecorded)
    build('// second\n')
    const { code, output } = await terraform('apply', '-auto-approve', '-no-color')
    expect(code).toBe(1)
    expect(output).toContain('412')
  })

  test('a migration recorded before the script exists is rejected: its class has no objects', async () => {
    const { account, terraform, set, apply } = await createWitnessFixture()
    set(migrationRecorded)
    const { code, output } = await terraform('apply', '-auto-approve', '-no-color')
    expect(code).toBe(1)
    expect(collapseWhitespace(output)).toContain("no Durable Objects of a class 'LeaseObject'")
    expect(account.scripts.size).toBe(0)
    set({})
    await apply()
    expect(account.script('lease-witness').migrationTag).toBe('v1')
  })

  test('without a built script nothing is created', async () => {
    const { account, directory, terraform } = await createWitnessFixture()
    rmSync(join(directory, 'built.js'))
    const { code, output } = await terraform('apply', '-auto-approve', '-no-color')
    expect(code).toBe(1)
    expect(collapseWhitespace(output)).toContain('No built script at built.js: run pnpm --filter lease-witness build')
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
    ['another account', ['apply', '-auto-approve'], { account_id: '0ace'.repeat(8) }, 'kv_namespace.leases'],
  ])('%s is rejected, because it would delete the leases', async (_, command, variables, resource) => {
    const { account, terraform, set, apply } = await createWitnessFixture()
    await apply()
    set({ ...migrationRecorded, ...variables })
    const { code, output } = await terraform(...command, '-no-color')
    expect(code, output).toBe(1)
    expect(collapseWhitespace(output)).toContain(
      `Resource cloudflare_workers_${resource} has lifecycle.prevent_destroy set`,
    )
    expect([...account.scripts.keys()]).toEqual(['lease-witness'])
    expect(account.namespaces.size).toBe(1)
  })
})

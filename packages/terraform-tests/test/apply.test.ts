import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { alter, flat } from './fixtures/stage.ts'
import { withTerraform } from './fixtures/terraform-test.ts'
import { workspace } from './fixtures/workspace.ts'

const recorded = { applied_migration_tag: 'v1' }
const reminder = 'set applied_migration_tag = "v1"'

withTerraform('first apply and later ones', () => {
  test('makes the script with its migration, says what to do next, and then has nothing left to do', async () => {
    const { account, terraform, apply } = await workspace()
    expect(flat(await apply())).toContain(reminder)
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

  test('a new script is uploaded once the migration is recorded, to the same objects, with no reminder', async () => {
    const { account, terraform, set, build, plan, apply, outputs } = await workspace()
    await apply()
    const { namespace_id } = await outputs()
    set(recorded)
    const { resource_changes } = await plan()
    expect(resource_changes.flatMap(({ change }) => change.actions)).not.toContain('delete')
    const output = await apply()
    expect(flat(output)).not.toContain(reminder)
    build('// second\n')
    await apply()
    expect(account.script('lease-witness')).toMatchObject({ content: '// second\n', migrationTag: 'v1' })
    expect((await outputs()).namespace_id).toBe(namespace_id)
    expect((await terraform('plan', '-detailed-exitcode')).code).toBe(0)
  })

  test('recording and uploading fit into one apply', async () => {
    const { account, set, build, apply } = await workspace()
    await apply()
    set(recorded)
    build('// second\n')
    await apply()
    expect(account.script('lease-witness').content).toBe('// second\n')
  })

  test('a new script without the record is refused with 412 and changes nothing; recording repairs it', async () => {
    const { account, terraform, set, build, apply } = await workspace()
    await apply()
    build('// second\n')
    const { code, output } = await terraform('apply', '-auto-approve', '-no-color')
    expect(code).toBe(1)
    expect(output).toContain('412')
    expect(flat(output)).toContain(reminder)
    expect(account.script('lease-witness').content).toBe('// first\n')
    set(recorded)
    await apply()
    expect(account.script('lease-witness').content).toBe('// second\n')
  })

  test('ignoring changes of the migration would not help: the one of the state is sent again', async () => {
    const { terraform, set, build, apply } = await workspace({
      change: directory =>
        alter(
          join(directory, 'script.tf'),
          '    prevent_destroy = true',
          '    prevent_destroy = true\n    ignore_changes = [migrations]',
        ),
    })
    await apply()
    set(recorded)
    build('// second\n')
    const { code, output } = await terraform('apply', '-auto-approve', '-no-color')
    expect(code).toBe(1)
    expect(output).toContain('412')
  })

  test('a migration recorded before the script exists is refused: its class has no objects', async () => {
    const { account, terraform, set, apply } = await workspace()
    set(recorded)
    const { code, output } = await terraform('apply', '-auto-approve', '-no-color')
    expect(code).toBe(1)
    expect(flat(output)).toContain("no Durable Objects of a class 'LeaseObject'")
    expect(account.scripts.size).toBe(0)
    set({})
    await apply()
    expect(account.script('lease-witness').migrationTag).toBe('v1')
  })

  test('a script that was not built is refused before anything is made', async () => {
    const { account, directory, terraform } = await workspace()
    rmSync(join(directory, 'built.js'))
    const { code, output } = await terraform('apply', '-auto-approve', '-no-color')
    expect(code).toBe(1)
    expect(flat(output)).toContain('No built script at built.js: run pnpm --filter lease-witness build')
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
  ])('%s is refused: it would take the leases away', async (_, command, variables, kept) => {
    const { account, terraform, set, apply } = await workspace()
    await apply()
    set({ ...recorded, ...variables })
    const { code, output } = await terraform(...command, '-no-color')
    expect(code, output).toBe(1)
    expect(flat(output)).toContain(`Resource cloudflare_workers_${kept} has lifecycle.prevent_destroy set`)
    expect([...account.scripts.keys()]).toEqual(['lease-witness'])
    expect(account.namespaces.size).toBe(1)
  })
})

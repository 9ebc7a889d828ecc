import { parsePlacement } from 'lease-witness/src/object/domain/placement.ts'
import { expect, test } from 'vitest'
import { changedPaths, collapseWhitespace } from './support/module-fixture.ts'
import { withTerraform } from './support/terraform.ts'
import { createWitnessFixture, type WitnessFixture } from './support/witness-fixture.ts'

const readSettings = ({ account }: WitnessFixture): Record<string, unknown> =>
  Object.fromEntries(
    account
      .script('lease-witness')
      .bindings.filter(({ type }) => type === 'plain_text')
      .map(({ name, text }) => [String(name), text]),
  )

const replaceRecord = ['apply', '-auto-approve', '-no-color', '-replace=terraform_data.jurisdiction'] as const

withTerraform('the settings of the witness', () => {
  test('only a setting that differs from its default is a variable of the script, except the log level', async () => {
    const fixture = await createWitnessFixture()
    await fixture.apply()
    expect(readSettings(fixture)).toEqual({ LOG_LEVEL: 'info' })
    fixture.set({
      log_level: 'debug',
      max_wait_seconds: 60,
      max_requests_per_minute: 600,
      drain: true,
      location_hints: { 'us/': 'enam', 'eu/': 'weur', '': 'eeur' },
    })
    await fixture.apply()
    expect(readSettings(fixture)).toEqual({
      LOG_LEVEL: 'debug',
      MAX_WAIT_SECONDS: '60',
      MAX_REQUESTS_PER_MINUTE: '600',
      DRAIN: 'true',
      LOCATION_HINTS: '=eeur,eu/=weur,us/=enam',
    })
    expect(parsePlacement(readSettings(fixture))).toMatchObject({ placement: { hints: [{}, {}, { prefix: '' }] } })
    expect((await fixture.terraform('plan', '-detailed-exitcode')).code).toBe(0)
    fixture.set({})
    await fixture.apply()
    expect(readSettings(fixture)).toEqual({ LOG_LEVEL: 'info' })
  })
})

withTerraform('bindings that are optional', () => {
  test('a secret of a store has the policies, a limit counts requests per location, and a dataset gets metrics', async () => {
    const { account, set, apply, terraform } = await createWitnessFixture()
    const store_id = '5ec5'.repeat(8)
    set({
      token_policies: {},
      token_policies_secret: { store_id, secret_name: 'lease-witness-policies' },
      request_limit: { namespace_id: 1001, requests: 600 },
      metrics_dataset: 'lease_witness',
    })
    await apply()
    await apply()
    const { bindings } = account.script('lease-witness')
    expect(bindings.filter(({ type }) => type === 'secret_text')).toEqual([])
    expect(bindings).toContainEqual(
      expect.objectContaining({
        name: 'TOKEN_POLICIES',
        type: 'secrets_store_secret',
        store_id,
        secret_name: 'lease-witness-policies',
      }),
    )
    expect(bindings).toContainEqual(
      expect.objectContaining({
        name: 'REQUEST_LIMIT',
        type: 'ratelimit',
        namespace_id: '1001',
        simple: { limit: 600, period: 60 },
      }),
    )
    expect(bindings).toContainEqual(
      expect.objectContaining({ name: 'METRICS', type: 'analytics_engine', dataset: 'lease_witness' }),
    )
    expect((await terraform('plan', '-detailed-exitcode')).code).toBe(0)
  })
})

withTerraform('the jurisdiction', () => {
  test.each([
    ['another one', 'eu', 'us', 'Set it to "eu"'],
    ['none', 'eu', null, 'Set it to "eu"'],
    ['one where there was none', null, 'eu', 'Set it to null'],
  ])('cannot be changed after the first apply: %s', async (_, first, later, advice) => {
    const fixture = await createWitnessFixture()
    fixture.set({ jurisdiction: first })
    await fixture.apply()
    await fixture.apply()
    expect(readSettings(fixture).JURISDICTION).toBe(first ?? undefined)
    expect((await fixture.terraform('plan', '-detailed-exitcode')).code).toBe(0)
    fixture.set({ jurisdiction: later })
    const { code, output } = await fixture.terraform('apply', '-auto-approve', '-no-color')
    expect(code, output).toBe(1)
    expect(collapseWhitespace(output)).toContain('jurisdiction cannot be changed')
    expect(collapseWhitespace(output)).toContain(advice)
    const replaced = await fixture.terraform(...replaceRecord)
    expect(replaced.code, replaced.output).toBe(1)
    expect(replaced.output).toContain('prevent_destroy')
    expect(readSettings(fixture).JURISDICTION).toBe(first ?? undefined)
  })

  test('of objects that were created without Terraform is imported', async () => {
    const fixture = await createWitnessFixture()
    fixture.set({ jurisdiction: 'eu' })
    const migration = { oldTag: '', newTag: 'v1', newClasses: ['LeaseObject'] }
    await fixture.account.upload('lease-witness', { content: '// eu\n', bindings: [], migration })
    const rejected = await fixture.terraform('apply', '-auto-approve', '-no-color')
    expect(rejected.code).toBe(1)
    expect(collapseWhitespace(rejected.output)).toContain('jurisdiction cannot be changed')
    expect(fixture.account.script('lease-witness').content).toBe('// eu\n')
    await fixture.terraform('state', 'rm', 'terraform_data.jurisdiction')
    const imported = await fixture.terraform('import', '-no-color', 'terraform_data.jurisdiction', 'eu')
    expect(imported.code, imported.output).toBe(0)
    await fixture.apply()
    expect(readSettings(fixture).JURISDICTION).toBe('eu')
    expect(changedPaths(await fixture.plan())).toEqual([])
    fixture.set({})
    expect((await fixture.terraform('plan')).code).toBe(1)
  })
})

import { expect, test } from 'vitest'
import { collapseWhitespace } from './support/module-fixture.ts'
import { withTerraform } from './support/terraform.ts'
import { createWitnessFixture, zoneId } from './support/witness-fixture.ts'

const workersDev = 'https://lease-witness.acme.workers.dev'
const custom = 'https://witness.example.com'
const custom_domain = { hostname: 'witness.example.com', zone_id: zoneId }

withTerraform('addresses', () => {
  test.each([
    ['workers.dev', { workers_dev_subdomain: 'acme' }, [workersDev, null, workersDev], true],
    ['workers.dev with an unknown subdomain', {}, [null, null, null], true],
    [
      'a custom domain',
      { workers_dev: false, workers_dev_subdomain: 'acme', custom_domain },
      [custom, custom, null],
      false,
    ],
    ['both', { workers_dev_subdomain: 'acme', custom_domain }, [custom, custom, workersDev], true],
    ['both, with an unknown subdomain', { custom_domain }, [custom, custom, null], true],
  ] as const)(
    '%s: the outputs have the actual addresses',
    async (_, variables, [url, custom_domain_url, workers_dev_url], open) => {
      const { account, set, apply, outputs } = await createWitnessFixture()
      set(variables)
      await apply()
      // Terraform omits outputs that are null.
      const withNulls = { url: null, custom_domain_url: null, workers_dev_url: null, ...(await outputs()) }
      expect(withNulls).toMatchObject({ url, custom_domain_url, workers_dev_url, script_name: 'lease-witness' })
      expect([...account.namespaces.keys()]).toEqual([(await outputs()).namespace_id])
      expect(account.subdomains.get('lease-witness')).toEqual({ enabled: open, previews: false })
      const expected = custom_domain_url ? [{ hostname: 'witness.example.com', zoneId, service: 'lease-witness' }] : []
      expect([...account.domains.values()]).toEqual(expected)
    },
  )

  test('a custom domain replaces workers.dev; workers.dev can be enabled again', async () => {
    const { account, set, apply, terraform } = await createWitnessFixture()
    await apply()
    set({ workers_dev: false, custom_domain })
    await apply()
    expect(account.subdomains.get('lease-witness')?.enabled).toBe(false)
    expect((await terraform('plan', '-detailed-exitcode')).code).toBe(0)
    set({})
    await apply()
    expect(account.subdomains.get('lease-witness')?.enabled).toBe(true)
    expect(account.domains.size).toBe(0)
  })

  test.each([
    ['no address', { workers_dev: false }, 'The witness would have no address'],
    [
      'a host name without its zone',
      { custom_domain: { hostname: 'witness.example.com' } },
      'attribute "zone_id" is required',
    ],
    ['a zone without a host name', { custom_domain: { zone_id: zoneId } }, 'attribute "hostname" is required'],
    ['a null zone', { custom_domain: { ...custom_domain, zone_id: null } }, 'needs both hostname and zone_id'],
    ['a URL as the host name', { custom_domain: { ...custom_domain, hostname: custom } }, 'no scheme, no path'],
    ['the account id as the subdomain', { workers_dev_subdomain: 'acc0'.repeat(8) }, 'looks like an account id'],
    ['a full name as the subdomain', { workers_dev_subdomain: 'acme.workers.dev' }, 'no dot, no scheme'],
  ])('%s: rejected with the reason, and nothing is created', async (_, variables, expectedError) => {
    const { account, set, terraform } = await createWitnessFixture()
    set(variables)
    const { code, output } = await terraform('apply', '-auto-approve', '-no-color')
    expect(code, output).toBe(1)
    expect(collapseWhitespace(output)).toContain(expectedError)
    expect(account.namespaces.size + account.scripts.size).toBe(0)
  })
})

import { describe, expect, test } from 'vitest'
import { deleteRecord, lookUp, outdateDatabase, writeOrphan } from '../support/seed.ts'
import type { ConsoleSuite } from '../support/suite.ts'

/** An operator works on a zone. After each task, the database and DNS are inspected. */
export const testZones = (suite: ConsoleSuite): void => {
  const dialog = () => suite.page.getByRole('dialog')
  const confirm = (name: string) => dialog().getByRole('button', { name }).click()
  const readState = async (subdomain: string): Promise<string | undefined> => {
    const [row] = await suite.stack.sql`select state from pool_allocations where subdomain = ${subdomain}`
    return row?.state
  }
  const compare = async () => {
    await suite.open('/zones/pool.test')
    await suite.press('Compare with the zone')
    await suite.page.getByRole('button', { name: 'Compare again' }).waitFor()
  }

  describe('zones', () => {
    test('show their health', async () => {
      await suite.open('/zones')
      await suite.seeText('a record of another writer')
      await suite.check('zones')
    })

    test('show drift and conflicts as a diff, and a converge repairs it', async () => {
      const { page, stack } = suite
      await deleteRecord(stack, 'api.hooli.pool.test', 'A')
      await compare()
      await page.getByRole('row', { name: /added api\.hooli\.pool\.test A/ }).waitFor()
      await page.getByRole('table', { name: 'Conflicts' }).getByRole('link', { name: 'oceanic' }).waitFor()
      await suite.check('zone')
      await suite.press('Converge')
      await dialog().getByText('api.hooli.pool.test').waitFor()
      await suite.check('a converge')
      await confirm('Converge')
      await suite.seeDone(/pool\.test: \d+ change/)
      await expect.poll(() => lookUp(stack.api.dnsServer, 'api.hooli.pool.test')).toEqual(['203.0.113.18'])
    })

    test('adopt one orphan and remove another', async () => {
      const { page, stack } = suite
      await writeOrphan(stack, 'ghost')
      await compare()
      await page.getByRole('row', { name: /ghost/ }).waitFor()
      await suite.press('Adopt')
      await dialog().getByRole('checkbox', { name: /ghost/ }).uncheck()
      await confirm('Adopt 1')
      await suite.seeDone('1 orphan adopted.')
      expect(await readState('stray')).toBe('active')
      await expect.poll(() => page.getByRole('row', { name: /stray/ }).count()).toBe(0)
      await suite.press('Remove')
      await dialog().getByText('Every record set at and below these names is deleted').waitFor()
      await dialog().getByText('ghost').waitFor()
      await suite.check('the removal of orphans')
      await confirm('Remove 1')
      await suite.seeDone('1 orphan removed.')
      await expect.poll(() => lookUp(stack.api.dnsServer, 'ghost.pool.test')).toEqual([])
      expect(await readState('ghost')).toBe(undefined)
    })

    test('list the records that an earlier provider still has, and the plan of a republish', async () => {
      const { page, stack } = suite
      await suite.open('/zones/pool.test')
      await suite.press('Republish')
      await dialog().getByText('there is nothing to republish').waitFor()
      expect(await dialog().getByRole('button', { name: 'Republish' }).isDisabled()).toBe(true)
      await suite.check('a republish')
      expect(await page.getByText('Records at an earlier provider').count()).toBe(0)
      await stack.sql`
        insert into dns_former_records (zone, provider_kind, name, type, record_values)
        values ('pool.test', 'powerdns', 'acme.pool.test', 'A', ${['203.0.113.10']})`
      await page.reload()
      const table = page.getByRole('table', { name: 'Records at an earlier provider' })
      await table.getByText('powerdns').waitFor()
      await table.getByText('203.0.113.10').waitFor()
      await stack.sql`delete from dns_former_records`
    })

    test('say why nothing is written when they are stopped, and a resume settles the differences', async () => {
      const { page, stack } = suite
      await outdateDatabase(stack)
      await stack.client.updateName({ domain: 'pool.test', subdomain: 'wayne', loadBalancerIP: '203.0.113.150' })
      await suite.open('/zones/pool.test')
      await suite.seeText('The database is older than the last write to the zone')
      await suite.check('a stopped zone')
      await suite.press('Resume')
      await dialog().getByText('The zone gets the records of the database.').waitFor()
      await dialog()
        .getByText(/database 203\.0\.113\.150, zone 203\.0\.113\./)
        .waitFor()
      await suite.check('the resume of a zone')
      await page.getByRole('radio', { name: 'The zone is right' }).check()
      await dialog().getByText('The database gets the names and the addresses of the zone.').waitFor()
      await dialog()
        .getByText(/names? (?:differs|differ)/)
        .waitFor()
      await suite.check('the resume of a zone that is right')
      await page.getByRole('radio', { name: 'The database is right' }).check()
      await dialog().getByText('the zone gets the address of the database').first().waitFor()
      await confirm('Resume')
      await suite.seeDone('pool.test is written again')
      await expect.poll(() => lookUp(stack.api.dnsServer, 'wayne.pool.test')).toEqual(['203.0.113.150'])
    })
  })
}

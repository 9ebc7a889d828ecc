import { describe, expect, test } from 'vitest'
import { lookUp } from '../support/seed.ts'
import type { ConsoleSuite } from '../support/suite.ts'

/** An operator works on names. After each task, the database and DNS are inspected. */
export const testNames = (suite: ConsoleSuite): void => {
  const dialog = () => suite.page.getByRole('dialog')
  const searchBox = () => suite.page.getByRole('searchbox', { name: 'Search' })
  const shownNames = () =>
    suite.page.getByRole('table', { name: 'Names' }).locator('tbody tr td:first-child').allInnerTexts()
  const openName = (subdomain: string) => suite.open(`/names/pool.test/${subdomain}`)
  const readState = async (subdomain: string): Promise<string | undefined> => {
    const [row] = await suite.stack.sql`select state from pool_allocations where subdomain = ${subdomain}`
    return row?.state
  }

  describe('names', () => {
    test('are found as the operator types', async () => {
      await suite.open('/names')
      await suite.seeText('cyberdyne')
      await suite.check('names')
      for (const [text, expected] of [
        ['ac', ['acme.pool.test']],
        ['globex.pool.te', ['globex.pool.test']],
        ['203.0.113.12', ['initech.pool.test']],
      ] as const) {
        await searchBox().fill('')
        await searchBox().pressSequentially(text)
        await expect.poll(shownNames).toEqual(expected)
      }
      await searchBox().fill('by:ops@platform')
      await expect.poll(async () => (await shownNames()).length).toBe(6)
      await searchBox().fill('nothing-like-this')
      await suite.seeText('No name matches.')
      await suite.check('no name')
    })

    test('have filters and pages, which the address keeps', async () => {
      const { page } = suite
      await suite.open('/names')
      await page.getByLabel('DNS').selectOption('failing')
      await expect.poll(shownNames).toEqual(['oceanic.pool.test'])
      await page.reload()
      await expect.poll(shownNames).toEqual(['oceanic.pool.test'])
      await page.getByLabel('DNS').selectOption('')
      await page.getByLabel('State').selectOption('reserved')
      const first = 'page-00.pool.test'
      await expect.poll(async () => (await shownNames())[0]).toBe(first)
      expect(await shownNames()).toHaveLength(50)
      await suite.press('Next')
      await suite.seeText('Page 2: 11 names')
      await suite.press('Previous')
      await expect.poll(async () => (await shownNames())[0]).toBe(first)
    })

    test('get another address, in the database and in DNS', async () => {
      const { page, stack } = suite
      await openName('acme')
      await suite.seeText('The zone has the desired records.')
      await suite.check('a name')
      await suite.press('Change the target')
      await dialog().getByLabel('New target').fill('300.1.1.1')
      await dialog().getByText('The address must be a unicast IPv4 address').waitFor()
      await suite.check('an invalid address')
      await dialog().getByLabel('New target').fill('203.0.113.99')
      await dialog().getByText('acme.pool.test stays active and gets the new address.').waitFor()
      await dialog().getByText('→').first().waitFor()
      await suite.check('another address')
      await dialog().getByRole('button', { name: 'Change the target' }).click()
      await suite.seeDone('acme.pool.test points to 203.0.113.99')
      const [row] =
        await stack.sql`select host(load_balancer_ip) as address from pool_allocations where subdomain = 'acme'`
      expect(row?.address).toBe('203.0.113.99')
      await expect.poll(() => lookUp(stack.api.dnsServer, 'api.acme.pool.test')).toEqual(['203.0.113.99'])
      await page.getByRole('listitem').filter({ hasText: 'Address changed' }).first().waitFor()
    })

    test('change on the page when another client changes them', async () => {
      await openName('stark')
      await suite.seeText('203.0.113.14')
      await suite.stack.client.updateName({ domain: 'pool.test', subdomain: 'stark', loadBalancerIP: '203.0.113.77' })
      await suite.seeText('203.0.113.77')
    })

    test('have tokens for tools of the tenant, which an operator revokes', async () => {
      const { client } = suite.stack
      const name = { domain: 'pool.test', subdomain: 'stark' }
      const { id } = await client.mintToken({ ...name, scope: 'acme', owner: 'certs' })
      const shown = id.slice(0, 8)
      await openName('stark')
      await suite.seeText('never used')
      await suite.check('tokens of a name')
      await suite.press(`Revoke the token ${shown}`)
      await suite.check('the end of a token')
      await dialog().getByRole('button', { name: 'Revoke' }).click()
      await suite.seeDone(`The token ${shown} is revoked`)
      expect((await client.listTokens({ domain: 'pool.test', sub: 'stark' })).tokens).toEqual([])
    })

    test('are released into their cool-off, which an operator ends', async () => {
      const { stack } = suite
      await openName('globex')
      await suite.seeText('The zone has the desired records.')
      await suite.press('Release')
      await dialog().getByText('globex.pool.test is released. Only its former client can reserve it for 1 h.').waitFor()
      await dialog().getByText('In DNS, 6 record sets are deleted.').waitFor()
      await suite.check('name-release')
      await dialog().getByRole('button', { name: 'Cancel' }).click()
      expect(await readState('globex')).toBe('active')
      await suite.press('Release')
      await dialog().getByRole('button', { name: 'Release' }).click()
      await suite.seeDone('globex.pool.test is released')
      expect(await readState('globex')).toBe('released')
      await expect.poll(() => lookUp(stack.api.dnsServer, 'globex.pool.test')).toEqual([])
      await suite.press('End the cool-off')
      await dialog().getByText('The cool-off of globex.pool.test ends. Any client can reserve it.').waitFor()
      await suite.check('the end of a cool-off')
      await dialog().getByRole('button', { name: 'End the cool-off' }).click()
      await suite.seeDone('globex.pool.test is free.')
      expect((await stack.client.checkName({ domain: 'pool.test', sub: 'globex' })).available).toBe(true)
    })

    test('that cannot be published say why, next to the record in the way', async () => {
      await openName('oceanic')
      await suite.seeText('The records could not be published.')
      await suite.seeText('of another writer, not changed')
      await suite.page.getByRole('row', { name: /oceanic\.pool\.test CNAME/ }).waitFor()
      await suite.check('name-failing')
    })

    test('show the beginning of a long reason in the list, and all of it on request', async () => {
      const { page } = suite
      await page.setViewportSize({ width: 320, height: 640 })
      await suite.open('/names?q=oceanic')
      const summary = page.locator('details.reason summary')
      const countHidden = () => summary.locator('span').evaluate(text => text.scrollHeight - text.clientHeight)
      await summary.waitFor()
      expect(await countHidden()).toBeGreaterThan(0)
      await summary.press('Enter')
      await expect.poll(countHidden).toBe(0)
      await suite.check('a long reason')
      await page.setViewportSize({ width: 1_280, height: 800 })
    })

    test('can be as long as the service permits', async () => {
      const { page } = suite
      const [label, creator] = ['c'.repeat(63), 'o'.repeat(253)]
      await page.route('**/api/v1/names?*', async route => {
        const response = await route.fetch()
        const body = (await response.text()).replaceAll('cyberdyne', label).replaceAll('controller-eu', creator)
        await route.fulfill({ response, body })
      })
      await suite.open('/names')
      await suite.seeText(label)
      await suite.check('names with long texts')
    })
  })

  describe('a service that does not respond', () => {
    test('leaves the old data on the page until the new data is there', async () => {
      await suite.open('/names')
      await suite.seeText('cyberdyne')
      const delay = await suite.stack.api.delay(1_000, { path: '/api/v1/names' })
      await searchBox().fill('wayne')
      await suite.seeText('Searching …')
      await suite.seeText('cyberdyne')
      await delay.cancel()
      await expect.poll(shownNames).toEqual(['wayne.pool.test'])
    })

    test('is reported, and the page reads again when it is back', async () => {
      await suite.page.route('**/api/v1/names?*', route => route.abort('connectionrefused'))
      await suite.open('/names')
      await suite.seeText('The service did not respond.')
      await suite.check('a service that does not respond')
      await suite.page.unroute('**/api/v1/names?*')
      await suite.seeText('cyberdyne')
      expect(await suite.page.getByRole('alert').count()).toBe(0)
    })

    test('is not asked again by the operator if the client has done so', async () => {
      await openName('umbrella')
      await suite.press('Release')
      await dialog().getByText('umbrella.pool.test is released.').waitFor()
      const fault = await suite.stack.api.dropNextResponse({ method: 'DELETE' })
      await dialog().getByRole('button', { name: 'Release' }).click()
      await fault.occurred()
      // The client repeats the request under its Idempotency-Key and gets the first result.
      await suite.seeDone('umbrella.pool.test is released')
      expect(await readState('umbrella')).toBe('released')
    })

    test('may have made the change: a second confirmation does not make it again', async () => {
      const { page, stack } = suite
      await openName('wayne')
      await suite.press('Change the target')
      await dialog().getByLabel('New target').fill('203.0.113.98')
      await dialog().getByText('gets the new address').waitFor()
      await page.route('**/update', async route => {
        await route.fetch()
        await route.abort('connectionreset')
      })
      const confirm = dialog().getByRole('button', { name: 'Change the target' })
      await confirm.click()
      await dialog().getByText('The change may have been made').waitFor()
      await page.unroute('**/update')
      await confirm.click()
      await suite.seeDone('wayne.pool.test points to 203.0.113.98')
      const updates = await stack.sql`
        select from allocation_history where subdomain = 'wayne' and event = 'updated'`
      expect(updates.length).toBe(1)
    })
  })
}

import type { Page } from 'playwright-core'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { openPage, signIn, type Visitor } from '../support/browser.ts'
import { lookUp } from '../support/dns.ts'
import { deleteRecord, outdateDatabase, seedNames, writeOrphan } from '../support/seed.ts'
import { skipsBrowser, useBrowserSuite } from '../support/session.ts'

// An operator works on names, zones and leases. After each task, the database and DNS are inspected.

const getSuite = useBrowserSuite(async stack => {
  await seedNames(stack)
  const reservations = Array.from({ length: 60 }, (_, index) => `page-${String(index).padStart(2, '0')}`)
  await Promise.all(reservations.map(subdomain => stack.client.reserveName({ domain: 'pool.test', subdomain })))
})

let visitor: Visitor
let page: Page

beforeEach(async () => {
  if (skipsBrowser) return
  const { browser, origin, stack } = getSuite()
  visitor = await openPage(browser, origin)
  page = visitor.page
  await signIn(page, origin, stack.api.operatorToken)
})
afterEach(async () => {
  if (skipsBrowser) return
  await visitor.context.close()
  expect(visitor.faults).toEqual([])
})

const shownNames = () => page.getByRole('table', { name: 'Names' }).locator('tbody tr td:first-child').allInnerTexts()
const expectText = (text: string | RegExp) => page.getByText(text).first().waitFor()
/** What the page says has been done. */
const expectDone = (text: string | RegExp) => page.locator('.toasts').getByText(text).first().waitFor()
const openName = (subdomain: string) => page.goto(`${getSuite().origin}/console/names/pool.test/${subdomain}`)
const dialog = () => page.getByRole('dialog')
const readState = async (subdomain: string): Promise<string | undefined> => {
  const [row] = await getSuite().stack.sql`select state from pool_allocations where subdomain = ${subdomain}`
  return row?.state
}

describe.skipIf(skipsBrowser)('names', () => {
  test.each([
    ['ac', ['acme.pool.test']],
    ['globex.pool.te', ['globex.pool.test']],
    ['203.0.113.12', ['initech.pool.test']],
    ['by:ops@platform', 6],
    ['nothing-like-this', 0],
  ])('are found as the operator types: %s', async (text, expected) => {
    await page.getByRole('link', { name: 'Names', exact: true }).first().click()
    await page.getByRole('searchbox', { name: 'Search' }).pressSequentially(text)
    if (expected === 0) {
      await expectText('No name matches.')
      return
    }
    if (typeof expected === 'number') await expect.poll(async () => (await shownNames()).length).toBe(expected)
    else await expect.poll(shownNames).toEqual(expected)
  })

  test('have filters and pages, which the address keeps', async () => {
    await page.getByRole('link', { name: 'Names', exact: true }).first().click()
    await page.getByLabel('DNS').selectOption('failing')
    await expect.poll(shownNames).toEqual(['oceanic.pool.test'])
    await page.reload()
    await expect.poll(shownNames).toEqual(['oceanic.pool.test'])
    await page.getByLabel('DNS').selectOption('')
    await page.getByLabel('State').selectOption('reserved')
    const first = 'page-00.pool.test'
    await expect.poll(async () => (await shownNames())[0]).toBe(first)
    expect(await shownNames()).toHaveLength(50)
    await page.getByRole('button', { name: 'Next' }).click()
    await expectText('Page 2: 11 names')
    await page.getByRole('button', { name: 'Previous' }).click()
    await expect.poll(async () => (await shownNames())[0]).toBe(first)
  })

  test('get another address, in the database and in DNS', async () => {
    const { stack } = getSuite()
    await openName('acme')
    await page.getByRole('button', { name: 'Change the address' }).click()
    await dialog().getByLabel('New address').fill('300.1.1.1')
    await dialog().getByText('The address must be a unicast IPv4 address').waitFor()
    await dialog().getByLabel('New address').fill('203.0.113.99')
    await dialog().getByText('acme.pool.test stays active and gets the new address.').waitFor()
    await dialog().getByRole('button', { name: 'Change the address' }).click()
    await expectDone('acme.pool.test has the address 203.0.113.99')
    const [row] =
      await stack.sql`select host(load_balancer_ip) as address from pool_allocations where subdomain = 'acme'`
    expect(row?.address).toBe('203.0.113.99')
    await expect.poll(() => lookUp(stack.api.dnsServer, 'api.acme.pool.test')).toEqual(['203.0.113.99'])
    await page.getByRole('listitem').filter({ hasText: 'Address changed' }).first().waitFor()
  })

  test('are released into their cool-off, which an operator ends', async () => {
    const { stack } = getSuite()
    await openName('globex')
    await page.getByRole('button', { name: 'Release' }).click()
    await dialog().getByText('globex.pool.test is released. Only its former client can reserve it for 1 h.').waitFor()
    await dialog().getByText('In DNS, 6 record sets are deleted.').waitFor()
    await dialog().getByRole('button', { name: 'Cancel' }).click()
    expect(await readState('globex')).toBe('active')
    await page.getByRole('button', { name: 'Release' }).click()
    await dialog().getByRole('button', { name: 'Release' }).click()
    await expectDone('globex.pool.test is released')
    expect(await readState('globex')).toBe('released')
    await expect.poll(() => lookUp(stack.api.dnsServer, 'globex.pool.test')).toEqual([])
    await page.getByRole('button', { name: 'End the cool-off' }).click()
    await dialog().getByText('The cool-off of globex.pool.test ends.').waitFor()
    await dialog().getByRole('button', { name: 'End the cool-off' }).click()
    await expectDone('globex.pool.test is free.')
    expect((await stack.client.checkName({ domain: 'pool.test', sub: 'globex' })).available).toBe(true)
  })

  test('that cannot be published say why, next to the record in the way', async () => {
    await openName('oceanic')
    await expectText('The records could not be published.')
    await page.getByText('of another writer, not changed').waitFor()
    await page.getByRole('row', { name: /oceanic\.pool\.test CNAME/ }).waitFor()
  })

  test('show the beginning of a long reason in the list, and all of it on request', async () => {
    await page.setViewportSize({ width: 320, height: 640 })
    await page.goto(`${getSuite().origin}/console/names?q=oceanic`)
    const summary = page.locator('details.reason summary')
    const countHidden = () => summary.locator('span').evaluate(text => text.scrollHeight - text.clientHeight)
    await summary.waitFor()
    expect(await countHidden()).toBeGreaterThan(0)
    await summary.press('Enter')
    await expect.poll(countHidden).toBe(0)
  })

  test('change on the page when another client changes them', async () => {
    const { stack } = getSuite()
    await openName('stark')
    await page.getByText('203.0.113.14').first().waitFor()
    await stack.client.updateName({ domain: 'pool.test', subdomain: 'stark', loadBalancerIP: '203.0.113.77' })
    await page.getByText('203.0.113.77').first().waitFor()
  })
})

describe.skipIf(skipsBrowser)('zones', () => {
  const openZone = async () => {
    await page.goto(`${getSuite().origin}/console/zones/pool.test`)
    await page.getByRole('button', { name: 'Compare with the zone' }).click()
    await page.getByRole('button', { name: 'Compare again' }).waitFor()
  }

  test('show drift as a diff, and a converge repairs it', async () => {
    const { stack } = getSuite()
    await deleteRecord(stack, 'api.hooli.pool.test', 'A')
    await openZone()
    await page.getByRole('row', { name: /added api\.hooli\.pool\.test A/ }).waitFor()
    await page.getByRole('button', { name: 'Converge' }).first().click()
    await dialog().getByText('api.hooli.pool.test').waitFor()
    await dialog().getByRole('button', { name: 'Converge' }).click()
    await expectDone(/pool\.test: \d+ change/)
    await expect.poll(() => lookUp(stack.api.dnsServer, 'api.hooli.pool.test')).toEqual(['203.0.113.18'])
  })

  test('adopt one orphan and remove another', async () => {
    const { stack } = getSuite()
    for (const name of ['stray', 'ghost']) {
      await writeOrphan(stack, name)
    }
    await openZone()
    await page.getByRole('row', { name: /ghost/ }).waitFor()
    await page.getByRole('button', { name: 'Adopt' }).click()
    await dialog().getByRole('checkbox', { name: /ghost/ }).uncheck()
    await dialog().getByRole('button', { name: 'Adopt 1' }).click()
    await expectDone('1 orphan adopted.')
    expect(await readState('stray')).toBe('active')
    await expect.poll(() => page.getByRole('row', { name: /stray/ }).count()).toBe(0)
    await page.getByRole('button', { name: 'Remove' }).click()
    await dialog().getByText('Every record set at and below these names is deleted').waitFor()
    await dialog().getByRole('button', { name: 'Remove 1' }).click()
    await expectDone('1 orphan removed.')
    await expect.poll(() => lookUp(stack.api.dnsServer, 'ghost.pool.test')).toEqual([])
    expect(await readState('ghost')).toBe(undefined)
  })

  test('list the records that an earlier provider still has', async () => {
    const { sql } = getSuite().stack
    await openZone()
    expect(await page.getByText('Records at an earlier provider').count()).toBe(0)
    await sql`
      insert into dns_former_records (zone, provider_kind, name, type, record_values)
      values ('pool.test', 'powerdns', 'acme.pool.test', 'A', ${['203.0.113.10']})`
    await page.reload()
    const table = page.getByRole('table', { name: 'Records at an earlier provider' })
    await table.getByText('powerdns').waitFor()
    await table.getByText('203.0.113.10').waitFor()
    await sql`delete from dns_former_records`
  })

  test('show a conflict, and the plan of a republish', async () => {
    await openZone()
    await page.getByRole('table', { name: 'Conflicts' }).getByRole('link', { name: 'oceanic' }).waitFor()
    await page.getByRole('button', { name: 'Republish' }).click()
    await dialog().getByText('there is nothing to republish').waitFor()
    expect(await dialog().getByRole('button', { name: 'Republish' }).isDisabled()).toBe(true)
  })
})

describe.skipIf(skipsBrowser)('a stopped zone', () => {
  test('says why nothing is written, and a resume settles the differences', async () => {
    const { stack, origin } = getSuite()
    await outdateDatabase(stack)
    await stack.client.updateName({ domain: 'pool.test', subdomain: 'wayne', loadBalancerIP: '203.0.113.150' })
    await page.goto(`${origin}/console/zones/pool.test`)
    await expectText('The database is older than the last write to the zone')
    await page.getByRole('button', { name: 'Resume' }).click()
    await dialog().getByText('The zone gets the records of the database.').waitFor()
    await dialog().getByText('database 203.0.113.150, zone 203.0.113.15').waitFor()
    await dialog().getByRole('radio', { name: 'The zone is right' }).check()
    await dialog().getByText('The database gets the names and the addresses of the zone.').waitFor()
    await dialog().getByRole('radio', { name: 'The database is right' }).check()
    await dialog().getByText('the zone gets the address of the database').first().waitFor()
    await dialog().getByRole('button', { name: 'Resume' }).click()
    await expectDone('pool.test is written again')
    await expect.poll(() => lookUp(stack.api.dnsServer, 'wayne.pool.test')).toEqual(['203.0.113.150'])
  })
})

describe.skipIf(skipsBrowser)('a slow or silent network', () => {
  test('leaves the old data on the page until the new data is there', async () => {
    const { stack, origin } = getSuite()
    await page.goto(`${origin}/console/names`)
    await page.getByText('cyberdyne').waitFor()
    await using delays = new AsyncDisposableStack()
    const fault = await stack.api.delay(2_000, { path: '/api/v1/names' })
    delays.defer(() => fault.cancel())
    await page.getByRole('searchbox', { name: 'Search' }).fill('wayne')
    await page.getByText('Searching …').waitFor()
    await page.getByText('cyberdyne').waitFor()
    await expect.poll(shownNames).toEqual(['wayne.pool.test'])
  })

  test('of a change is reported with what to do, and the change is not lost from sight', async () => {
    const { stack } = getSuite()
    await openName('umbrella')
    await page.getByRole('button', { name: 'Release' }).click()
    await dialog().getByText('umbrella.pool.test is released.').waitFor()
    const fault = await stack.api.dropNextResponse({ method: 'DELETE' })
    await dialog().getByRole('button', { name: 'Release' }).click()
    await fault.occurred()
    // The client repeats the request under its Idempotency-Key and gets the first result.
    await expectDone('umbrella.pool.test is released')
    expect(await readState('umbrella')).toBe('released')
  })

  test('in the middle of a search shows an error, and recovers without a reload', async () => {
    const { stack, origin } = getSuite()
    await page.goto(`${origin}/console/names`)
    await page.getByText('cyberdyne').waitFor()
    await page.route('**/api/v1/names?*', route => route.abort('connectionrefused'))
    await page.getByRole('searchbox', { name: 'Search' }).fill('wayne')
    await page.getByText('The service did not respond.').waitFor()
    await page.unroute('**/api/v1/names?*')
    await page.getByRole('button', { name: 'Try again' }).click()
    await expect.poll(shownNames).toEqual(['wayne.pool.test'])
    expect(await stack.client.getHealth()).toMatchObject({ status: 'ok' })
  })
})

describe.skipIf(skipsBrowser)('leases', () => {
  test('show their holder, and a dead holder loses its lease on confirmation', async () => {
    const { stack } = getSuite()
    await page.getByRole('link', { name: 'Leases' }).click()
    await page.getByRole('link', { name: 'region-pair/primary' }).click()
    await expectText('region-a/controller-0')
    await page.getByText(/5\d\smin \d+\ss/).waitFor()
    await page.getByRole('button', { name: 'Release' }).click()
    await dialog().getByText('A previous holder may still be running.').waitFor()
    const release = dialog().getByRole('button', { name: 'Release' })
    expect(await release.isDisabled()).toBe(true)
    await dialog().getByRole('checkbox').check()
    await release.click()
    await expectDone('The lease region-pair/primary is free.')
    const { holder, generation } = await stack.leases.read('region-pair/primary').then(({ lease }) => lease)
    expect({ holder, generation }).toEqual({ holder: '', generation: 2 })
    await page.getByRole('listitem').filter({ hasText: 'released' }).first().waitFor()
  })

  test.each([320, 1_280])('are sorted at a width of %i pixels', async width => {
    await page.setViewportSize({ width, height: 800 })
    await page.goto(`${getSuite().origin}/console/leases`)
    await page.getByRole('link', { name: 'region-pair/primary' }).waitFor()
    const slots = () => page.getByRole('table', { name: 'Leases' }).locator('tbody tr td:first-child').allInnerTexts()
    const shown = async () => (await slots()).map(text => text.split('/').at(-1))
    expect(await shown()).toEqual(['backup', 'primary'])
    if (width < 1_000) {
      await page.getByLabel('Sort by').selectOption('Slot, descending')
      await expect.poll(shown).toEqual(['primary', 'backup'])
      await page.getByLabel('Sort by').selectOption('the given order')
      await expect.poll(shown).toEqual(['backup', 'primary'])
    } else {
      expect(await page.getByLabel('Sort by').isVisible()).toBe(false)
      await page.getByRole('button', { name: 'Slot' }).click()
      await page.getByRole('button', { name: 'Slot' }).click()
      await expect.poll(shown).toEqual(['primary', 'backup'])
    }
  })

  test('are kept if the holder has renewed since', async () => {
    const { stack } = getSuite()
    await page.goto(`${getSuite().origin}/console/leases/${encodeURIComponent('region-pair/backup')}`)
    await page.getByRole('button', { name: 'Release' }).click()
    await stack.leases.renew('region-pair/backup', { holder: 'region-b/controller-0', generation: 1, ttlMs: 3_600_000 })
    await dialog().getByRole('checkbox').check()
    await dialog().getByRole('button', { name: 'Release' }).click()
    await dialog().getByRole('alert').waitFor()
    await dialog().getByText('The lease has changed since it was read').waitFor()
    expect((await stack.leases.read('region-pair/backup')).lease.holder).toBe('region-b/controller-0')
  })
})

describe.skipIf(skipsBrowser).each([
  {
    path: '/names',
    label: 'Search',
    link: 'Names',
    query: 'q',
    text: 'tyrell',
    found: 'tyrell.pool.test',
    first: 'acme.pool.test',
  },
  {
    path: '/leases',
    label: 'Slots that begin with',
    link: 'Leases',
    query: 'prefix',
    text: 'region-pair/p',
    found: 'region-pair/primary',
    first: 'region-pair/backup',
  },
])('the search of $path', ({ path, label, link, query, text, found, first }) => {
  const box = () => page.getByRole('searchbox', { name: label })
  const readQuery = () => new URL(page.url()).searchParams.get(query)

  test('keeps the letters that are typed while the address changes', async () => {
    await page.goto(`${getSuite().origin}/console${path}`)
    await box().waitFor()
    // The earliest moment of the change: each time the address gets the text so far, the next letter is typed.
    await page.evaluate(letters => {
      const input = document.querySelector<HTMLInputElement>('input[type="search"]')
      const replaceState = history.replaceState.bind(history)
      const type = () => {
        if (input === null || input.value === letters) return
        input.value = letters.slice(0, input.value.length + 1)
        input.dispatchEvent(new InputEvent('input', { bubbles: true }))
      }
      history.replaceState = (...state) => {
        replaceState(...state)
        type()
      }
      type()
    }, text)
    await expect.poll(readQuery).toBe(text)
    expect(await box().inputValue()).toBe(text)
    await page.getByRole('link', { name: found }).waitFor()
  })

  test('is empty after a link to the page, also while the typing pauses', async () => {
    await page.goto(`${getSuite().origin}/console${path}?${query}=none`)
    await box().waitFor()
    expect(await box().inputValue()).toBe('none')
    await page.evaluate(async name => {
      const input = document.querySelector<HTMLInputElement>('input[type="search"]')
      if (input === null) return
      input.value = 'none at all'
      input.dispatchEvent(new InputEvent('input', { bubbles: true }))
      await Promise.resolve()
      for (const element of document.querySelectorAll('nav a')) {
        if (element.textContent === name && element instanceof HTMLElement) element.click()
      }
    }, link)
    await page.getByRole('link', { name: first }).waitFor()
    await expect.poll(() => box().inputValue()).toBe('')
    expect(readQuery()).toBe(null)
  })
})

describe.skipIf(skipsBrowser)('several tabs', () => {
  test('of one browser end their session at the same time', async () => {
    const { origin } = getSuite()
    const other = await visitor.context.newPage()
    await other.goto(`${origin}/console/zones`)
    await other.getByRole('link', { name: 'pool.test' }).waitFor()
    await page.getByRole('button', { name: 'Sign out' }).click()
    await page.getByLabel('Operator token').waitFor()
    await other.getByText('The session has ended').waitFor()
    expect(await other.title()).toBe('Sign in · Operator console')
  })
})

describe.skipIf(skipsBrowser)('the keyboard', () => {
  test('is enough to find a name, change its address, and sign out', async () => {
    const { stack, origin } = getSuite()
    await visitor.context.clearCookies()
    await page.goto(`${origin}/console`)
    await expect.poll(() => page.evaluate(() => document.activeElement?.tagName)).toBe('INPUT')
    const press = (key: string) => page.keyboard.press(key)
    await page.keyboard.type(stack.api.operatorToken)
    await press('Enter')
    await page.getByRole('heading', { name: 'Overview' }).waitFor()
    await press('g')
    await press('n')
    await page.getByRole('heading', { name: 'Names', level: 1 }).waitFor()
    await press('/')
    await page.keyboard.type('tyrell')
    await expect.poll(shownNames).toEqual(['tyrell.pool.test'])
    const focused = () => page.evaluate(() => document.activeElement?.textContent ?? '')
    for (let steps = 0; steps < 10 && (await focused()) !== 'tyrell.pool.test'; steps += 1) await press('Tab')
    await press('Enter')
    await page.getByRole('heading', { name: 'tyrell.pool.test' }).waitFor()
    await page.getByRole('button', { name: 'Change the address' }).waitFor()
    for (let steps = 0; steps < 10 && (await focused()) !== 'Change the address'; steps += 1) await press('Tab')
    await press('Enter')
    await dialog().getByLabel('New address').waitFor()
    await page.keyboard.type('203.0.113.123')
    await dialog().getByText('gets the new address').waitFor()
    for (let steps = 0; steps < 10 && (await focused()) !== 'Change the address'; steps += 1) await press('Tab')
    await press('Enter')
    await expectDone('tyrell.pool.test has the address 203.0.113.123')
    await press('Control+k')
    await page.getByRole('combobox').waitFor()
    await page.keyboard.type('sign')
    await page.getByRole('option', { name: 'Sign out' }).waitFor()
    await press('Enter')
    await page.getByLabel('Operator token').waitFor()
    expect(await readState('tyrell')).toBe('active')
  })

  test('returns to where it was after a dialog, and to the heading after an action', async () => {
    const focused = () => page.evaluate(() => document.activeElement?.textContent ?? '')
    await openName('hooli')
    const opener = page.getByRole('button', { name: 'Change the address' })
    for (const open of ['Enter', 'Control+k', '?']) {
      await opener.focus()
      await page.keyboard.press(open)
      await dialog().waitFor()
      expect(await focused()).not.toBe('Change the address')
      await page.keyboard.press('Escape')
      await dialog().waitFor({ state: 'detached' })
      expect(await focused()).toBe('Change the address')
    }
    await page.keyboard.press('Enter')
    await page.keyboard.type('203.0.113.124')
    await dialog().getByText('gets the new address').waitFor()
    await page.keyboard.press('Enter')
    await expectDone('hooli.pool.test has the address 203.0.113.124')
    expect(await focused()).toBe('hooli.pool.test')
  })

  test('skips the navigation', async () => {
    await page.getByRole('link', { name: 'Skip to the content' }).focus()
    await page.keyboard.press('Enter')
    await expect.poll(() => page.evaluate(() => document.activeElement?.id)).toBe('content')
  })

  test('runs an action of the page from the palette', async () => {
    await page.keyboard.type('gz')
    await page.getByRole('link', { name: 'pool.test' }).waitFor()
    await page.keyboard.press('Control+k')
    await page.getByRole('combobox').waitFor()
    expect(await page.getByRole('option', { name: 'Republish' }).count()).toBe(0)
    await page.keyboard.press('Escape')
    await page.getByRole('link', { name: 'pool.test' }).press('Enter')
    await page.getByRole('button', { name: 'Republish' }).waitFor()
    await page.keyboard.press('Control+k')
    await page.getByRole('combobox').waitFor()
    await page.keyboard.type('republ')
    await page.getByRole('option', { name: 'Republish' }).waitFor()
    await page.keyboard.press('Enter')
    await dialog().getByText('there is nothing to republish').waitFor()
  })

  test('opens a name from the palette', async () => {
    await page.keyboard.press('Control+k')
    await page.getByRole('combobox').waitFor()
    await page.keyboard.type('cyber')
    await page.getByRole('option', { name: /cyberdyne\.pool\.test/ }).waitFor()
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { name: 'cyberdyne.pool.test' }).waitFor()
  })
})

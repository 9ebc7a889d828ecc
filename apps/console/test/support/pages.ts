import type { Page } from 'playwright-core'
import { openEmptyWizard } from './browser.ts'

/** A page in a state worth seeing, and what its screenshot is called. */
export interface PageState {
  readonly name: string
  readonly path: string
  /** False: docs/console.md does not show it. */
  readonly hasScreenshot?: boolean
  /** True: a dialog, an error or an empty state, which is checked in two views. */
  readonly isState?: boolean
  /** Brings the page into its state; resolves when everything is there. */
  readonly prepare: (page: Page) => Promise<void>
}

const SSH_KEY = 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f operator'

const heading = (name: string) => async (page: Page) => page.getByRole('heading', { name, level: 1 }).waitFor()
const text = (content: string) => async (page: Page) => page.getByText(content).first().waitFor()

const click = async (page: Page, name: string) => page.getByRole('button', { name, exact: true }).first().click()
/** Opens a dialog with a button of the page, and waits for a text of it. */
const dialog = (button: string, content: string | RegExp) => async (page: Page) => {
  await click(page, button)
  await page.getByRole('dialog').getByText(content).first().waitFor()
}
const compare = async (page: Page) => {
  await click(page, 'Compare with the zone')
  await page.getByRole('table', { name: 'Orphans' }).waitFor()
}
const fillDomain = async (page: Page) => {
  await page.getByLabel('Subdomain').fill('globex-2')
  await page.getByText('globex-2.pool.test is free.').waitFor()
  await click(page, 'Continue')
  await page.getByLabel('Organisation').waitFor()
}

const dialogsAndErrors: readonly PageState[] = [
  {
    name: 'another address',
    path: '/names/pool.test/acme',
    prepare: async page => {
      await page.getByText('The zone has the desired records.').waitFor()
      await click(page, 'Change the address')
      await page.getByLabel('New address').fill('203.0.113.99')
      await page.getByRole('dialog').getByText('→').first().waitFor()
    },
  },
  {
    name: 'an invalid address',
    path: '/names/pool.test/acme',
    prepare: async page => {
      await click(page, 'Change the address')
      await page.getByLabel('New address').fill('300.1')
      await page.getByText('The address must be').waitFor()
    },
  },
  {
    name: 'the end of a cool-off',
    path: '/names/pool.test/vandelay',
    prepare: dialog('End the cool-off', 'Any client can reserve it.'),
  },
  { name: 'a free name', path: '/names/pool.test/nobody', prepare: text('The name has no history.') },
  { name: 'an invalid name', path: '/names/pool.test/-bad-', prepare: text('The subdomain must be') },
  { name: 'an unknown zone', path: '/zones/other.test', prepare: text('The service has no zone of this name.') },
  { name: 'a converge', path: '/zones/pool.test', prepare: dialog('Converge', /record set/) },
  { name: 'a republish', path: '/zones/pool.test', prepare: dialog('Republish', 'nothing to republish') },
  {
    name: 'the removal of orphans',
    path: '/zones/pool.test',
    prepare: async page => {
      await compare(page)
      await dialog('Remove', 'stray')(page)
    },
  },
  {
    name: 'deployments without a result',
    path: '/deployments?status=destroyed',
    prepare: text('No deployment is destroyed.'),
  },
  {
    name: 'deployment-plan',
    path: '/deployments/{deployment}',
    prepare: async page => {
      await dialog('Destroy', 'Terraform destroys')(page)
      await click(page, 'Show the plan')
      await page.getByRole('region', { name: 'Plan' }).waitFor()
    },
  },
  {
    name: 'deployment-abandoned',
    path: '/deployments/{deployment}',
    prepare: dialog('Abandon', 'Nothing is destroyed.'),
  },
  {
    name: 'deployment-log-without-match',
    path: '/deployments/{deployment}',
    prepare: async page => {
      await page.getByText('The log is complete.').waitFor()
      await page.getByLabel('Search the log').fill('no such line')
      await page.getByText('No line matches.').waitFor()
    },
  },
  {
    name: 'an unknown deployment',
    path: '/deployments/00000000-0000-4000-8000-000000000000',
    prepare: text('No such deployment.'),
  },
  {
    name: 'errors of the wizard',
    path: '/deployments/new',
    prepare: async page => {
      await fillDomain(page)
      await click(page, 'Continue')
      await page.getByText('The region is required').waitFor()
    },
  },
  {
    name: 'the summary of the wizard',
    path: '/deployments/new',
    prepare: async page => {
      await page.getByLabel('Organisation').fill('Globex')
      await page.getByLabel('Mail address').fill('ops@globex.example')
      await page.getByLabel('Region').fill('local')
      await click(page, 'Continue')
      await page.getByLabel('SSH public key').fill('ssh-ed25519 AAAA')
      await page.getByText('The SSH key is damaged').waitFor()
      await page.getByLabel('SSH public key').fill(SSH_KEY)
      await click(page, 'Continue')
      await page.getByText('The same request with curl').click()
      await page.getByText('curl --silent').waitFor()
    },
  },
  {
    name: 'the proof of a domain',
    path: '/deployments/new',
    prepare: async page => {
      await openEmptyWizard(page)
      await page.getByRole('radio', { name: 'A domain of the tenant' }).check()
      await page.getByLabel('Domain of the tenant').last().fill('cloud.globex.example')
      await page.getByText('No deployment has cloud.globex.example.').waitFor()
      await click(page, 'Request the TXT record')
      await page.getByText('The record is not visible yet.').waitFor()
    },
  },
  {
    name: 'a draft to discard',
    path: '/deployments/new',
    prepare: dialog('Discard the draft', 'What you have entered is removed'),
  },
  {
    name: 'a long reason',
    path: '/names?q=oceanic',
    prepare: async page => {
      await page.locator('details.reason summary').click()
      await page.locator('details.reason[open]').waitFor()
    },
  },
  { name: 'no lease', path: '/leases?prefix=none', prepare: text('No slot begins with this text.') },
  { name: 'an unknown lease', path: '/leases/none', prepare: text('The slot has no history.') },
  {
    name: 'the release of a lease',
    path: '/leases/region-pair%2Fprimary',
    prepare: dialog('Release', 'A previous holder may still be running.'),
  },
  {
    name: 'an empty palette',
    path: '/zones',
    prepare: async page => {
      await heading('Zones')(page)
      await page.keyboard.press('Control+k')
      await page.getByRole('dialog').getByRole('combobox').fill('nothing-like-this')
      await page.getByText('Nothing found.').waitFor()
    },
  },
  {
    name: 'the shortcuts',
    path: '/zones',
    prepare: async page => {
      await heading('Zones')(page)
      await page.keyboard.press('?')
      await page.getByRole('dialog', { name: 'Keyboard shortcuts' }).waitFor()
    },
  },
  {
    name: 'the menu',
    path: '/zones',
    prepare: async page => {
      await heading('Zones')(page)
      const menu = page.getByRole('button', { name: 'Menu' })
      if (await menu.isVisible()) await menu.click()
      await page.getByRole('link', { name: 'Bucket claims' }).waitFor()
    },
  },
  {
    name: 'a service that does not respond',
    path: '/names',
    prepare: async page => {
      await page.getByText('cyberdyne').waitFor()
      await page.route('**/api/v1/names?*', route => route.abort('connectionrefused'))
      await page.getByRole('searchbox').fill('x')
      await page.getByRole('alert').waitFor()
      await page.unroute('**/api/v1/names?*')
    },
  },
]

/** A stopped zone. The test stops it after all other pages. */
export const stoppedZoneStates: readonly PageState[] = [
  {
    name: 'a stopped zone',
    hasScreenshot: false,
    path: '/zones/pool.test',
    prepare: text('older than the last write to the zone'),
  },
  {
    name: 'the resume of a zone',
    hasScreenshot: false,
    path: '/zones/pool.test',
    prepare: dialog('Resume', /names? (?:differs|differ)/),
  },
  {
    name: 'the resume of a zone that is right',
    hasScreenshot: false,
    path: '/zones/pool.test',
    prepare: async page => {
      await dialog('Resume', 'The zone gets the records of the database.')(page)
      await page.getByRole('radio', { name: 'The zone is right' }).check()
      await page.getByText('The database gets the names and the addresses of the zone.').waitFor()
      await page
        .getByRole('dialog')
        .getByText(/names? (?:differs|differ)/)
        .waitFor()
    },
  },
]

/** The pages and their states. `{deployment}` stands for the id of a deployment. */
export const pageStates: readonly PageState[] = [
  { name: 'overview', path: '', prepare: async page => page.locator('.plot canvas').nth(3).waitFor() },
  { name: 'names', path: '/names', prepare: text('cyberdyne') },
  { name: 'names-none', hasScreenshot: false, path: '/names?q=nothing-like-this', prepare: text('No name matches.') },
  { name: 'name', path: '/names/pool.test/acme', prepare: text('Address changed') },
  { name: 'name-failing', path: '/names/pool.test/oceanic', prepare: text('of another writer, not changed') },
  {
    name: 'name-release',
    path: '/names/pool.test/initech',
    prepare: async page => {
      await page.getByRole('button', { name: 'Release' }).click()
      await page.getByText('Only its former client can reserve it').waitFor()
    },
  },
  { name: 'zones', path: '/zones', prepare: text('a record of another writer') },
  {
    name: 'zone',
    path: '/zones/pool.test',
    prepare: async page => {
      await page.getByRole('button', { name: 'Compare with the zone' }).click()
      await page.getByRole('table', { name: 'Conflicts' }).waitFor()
    },
  },
  { name: 'deployments', path: '/deployments', prepare: text('initrode') },
  {
    name: 'deployment',
    path: '/deployments/{deployment}',
    prepare: async page => {
      await page.getByText('The log is complete.').waitFor()
      await page.getByLabel('Search the log').fill('apply')
      await page.locator('.log .message mark').first().waitFor()
    },
  },
  { name: 'wizard', path: '/deployments/new', prepare: heading('New deployment') },
  { name: 'buckets', path: '/buckets', prepare: text('No deployment has claimed a bucket.') },
  { name: 'leases', path: '/leases', prepare: text('region-pair/primary') },
  { name: 'lease', path: '/leases/region-pair%2Fprimary', prepare: text('acquired it') },
  {
    name: 'palette',
    path: '/zones',
    prepare: async page => {
      await page.getByText('a record of another writer').waitFor()
      await page.keyboard.press('Control+k')
      await page.getByRole('dialog').getByRole('combobox').fill('n')
      await page.getByRole('dialog').getByRole('option').nth(2).waitFor()
    },
  },
  { name: 'not-found', hasScreenshot: false, path: '/no-such-page', prepare: heading('Page not found') },
  {
    name: 'names with long texts',
    hasScreenshot: false,
    path: '/names',
    prepare: async page => {
      const [label, creator] = ['c'.repeat(63), 'o'.repeat(253)]
      await page.route('**/api/v1/names?*', async route => {
        const response = await route.fetch()
        const body = (await response.text()).replaceAll('cyberdyne', label).replaceAll('controller-eu', creator)
        await route.fulfill({ response, body })
      })
      // The page may have its names already.
      await page.reload()
      await page.getByText(label).first().waitFor()
      // The reload may have ended a request in the middle of its handler.
      await page.unrouteAll({ behavior: 'ignoreErrors' })
    },
  },
  ...dialogsAndErrors.map(state => ({ ...state, hasScreenshot: false, isState: true })),
]

import type { Page } from 'playwright-core'

/** A page in a state worth seeing, and what its screenshot is called. */
export interface PageState {
  readonly name: string
  readonly path: string
  /** False: docs/console.md does not show it. */
  readonly hasScreenshot?: boolean
  /** Brings the page into its state; resolves when everything is there. */
  readonly prepare: (page: Page) => Promise<void>
}

const heading = (name: string) => async (page: Page) => page.getByRole('heading', { name, level: 1 }).waitFor()
const text = (content: string) => async (page: Page) => page.getByText(content).first().waitFor()

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
  { name: 'zones', path: '/zones', prepare: text('foreign-record') },
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
      await page.locator('.log mark').first().waitFor()
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
      await page.getByText('foreign-record').waitFor()
      await page.keyboard.press('Control+k')
      await page.getByRole('combobox').fill('n')
      await page.getByRole('option').nth(2).waitFor()
    },
  },
  { name: 'not-found', hasScreenshot: false, path: '/no-such-page', prepare: heading('Page not found') },
]

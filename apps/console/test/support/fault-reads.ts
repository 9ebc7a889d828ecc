import { missingGateway } from '@pool/test-ceph'
import type { Locator, Page } from 'playwright-core'
import { openEmptyWizard } from './browser.ts'
import type { FaultStack } from './fault-stack.ts'
import { pools } from './fault-tasks.ts'
import { appendLogLines, seedDeployment } from './seed-deployment.ts'
import { storageKeys } from './suite.ts'

// A read of each kind: of the sign-in, of a page, of a stream, of a form.

/** A page that is open, and something that it reads on request. `subject` is a label that no earlier run had. */
export interface FaultRead {
  readonly name: string
  /** Writes what the page shows. Resolves with its path. */
  readonly prepare: (stack: FaultStack, subject: string) => Promise<string>
  /** Brings the page into the state in which it reads. */
  readonly open?: (page: Page, stack: FaultStack) => Promise<void>
  /** What is there before, and stays there. */
  readonly kept: (page: Page) => Locator
  /** Makes the page read: by hand, or because there is something new. */
  readonly act: (page: Page, subject: string, stack: FaultStack) => Promise<void>
  /** What it has read then; exactly one element. */
  readonly shown: (page: Page, subject: string) => Locator
  /** True: it is requested again by hand. False: the page tries again automatically. */
  readonly isRepeatedByHand?: boolean
  /** True: the page exchanges the token for a session. */
  readonly isSignIn?: boolean
}

const [NAMES, DEPLOYMENTS] = pools
const button = (page: Page, name: string) => page.getByRole('button', { name, exact: true })

/** The deployment that the page of the live log shows. */
const logDeployment = { id: '' }

const reads: readonly FaultRead[] = [
  {
    name: 'the sign-in',
    isSignIn: true,
    isRepeatedByHand: true,
    prepare: async () => '',
    open: async (page, stack) => {
      await page.context().clearCookies()
      await page.reload()
      await page.getByLabel('Operator token').fill(stack.token())
    },
    kept: page => page.getByRole('heading', { name: 'Operator console' }),
    act: page => button(page, 'Sign in').click(),
    shown: page => page.getByRole('heading', { name: 'Overview', level: 1 }),
  },
  {
    name: 'the search of names',
    prepare: async ({ client }, subject) => {
      await client.reserveName({ domain: NAMES, subdomain: `find-${subject}` })
      return '/names'
    },
    kept: page => page.getByRole('searchbox', { name: 'Search' }),
    act: async (page, subject) => page.getByRole('searchbox', { name: 'Search' }).fill(`find-${subject}`),
    shown: (page, subject) => page.getByRole('link', { name: `find-${subject}.${NAMES}` }),
  },
  {
    name: 'the live log',
    prepare: async (stack, subject) => {
      const subdomain = `log-${subject}`
      const { id } = await seedDeployment(stack, { pool: DEPLOYMENTS, subdomain, status: 'provisioning' })
      logDeployment.id = id
      await appendLogLines(stack, id, ['first line'])
      return `/deployments/${id}`
    },
    kept: page => page.locator('.log .message').getByText('first line'),
    act: (_, subject, stack) => appendLogLines(stack, logDeployment.id, [`line ${subject}`]),
    shown: (page, subject) => page.locator('.log .message').getByText(`line ${subject}`, { exact: true }),
  },
]

/** With a real gateway. */
const keyCheck: FaultRead = {
  name: 'the check of the keys in the wizard',
  isRepeatedByHand: true,
  prepare: async () => '/deployments/new',
  open: async page => {
    await openEmptyWizard(page)
    await page.getByLabel('Pool', { exact: true }).selectOption(DEPLOYMENTS)
    await page.getByLabel('Subdomain').fill('checked')
    await page.getByText('is free.').waitFor()
    await button(page, 'Continue').click()
    await page.getByLabel('Organisation').fill('Globex')
    await page.getByLabel('Mail address').fill('ops@globex.example')
    await page.getByRole('checkbox', { name: 'hetzner' }).check()
    await page.getByLabel('Region').fill('fsn1')
    await button(page, 'Continue').click()
    await page.getByLabel('Access key').waitFor()
  },
  kept: page => page.getByRole('heading', { name: 'New deployment' }),
  act: async page => {
    await page.getByLabel('Access key').fill(storageKeys.accessKey)
    await page.getByLabel('Secret key').fill(storageKeys.secretKey)
    await button(page, 'Check the keys and continue').click()
  },
  shown: page => page.getByRole('heading', { name: 'SSH key' }),
}

export const faultReads: readonly FaultRead[] = [...reads, ...(missingGateway === undefined ? [keyCheck] : [])]

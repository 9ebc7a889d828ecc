import { mkdir, writeFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { findProgram } from '@pool/dev/server-process'
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type OpenOptions, openPage, signIn } from '../support/browser.ts'
import { startTxtServer } from '../support/dns.ts'
import { type PageState, pageStates, stoppedZoneStates } from '../support/pages.ts'
import { toPalettePng } from '../support/palette-png.ts'
import { deleteRecord, outdateDatabase, seedNames, seedSamples, writeOrphan } from '../support/seed.ts'
import { skipsBrowser, useBrowserSuite } from '../support/session.ts'
import type { ConsoleStack } from '../support/stack.ts'

// Every page in both schemes, from 320 to 2,560 pixels, and at 200 % zoom: WCAG 2.2 AA, and no horizontal scrolling. With
// CONSOLE_SCREENSHOTS=<folder>, the screenshots of docs/console.md are written.

const axePath = createRequire(import.meta.url).resolve('axe-core/axe.min.js')
const screenshots = process.env.CONSOLE_SCREENSHOTS
const hasTerraform = findProgram('terraform') !== undefined

let deploymentId = ''

const tenantDns = await startTxtServer()
afterAll(() => tenantDns[Symbol.asyncDispose]())

const prepare = async (stack: ConsoleStack) => {
  await seedNames(stack)
  await seedSamples(stack)
  await writeOrphan(stack, 'stray')
  await deleteRecord(stack, 'api.hooli.pool.test', 'A')
  if (!hasTerraform) return
  const { id } = await stack.client.createDeployment({
    orgName: 'Initech',
    orgEmail: 'ops@initech.example',
    sovereignDomainMode: 'pool',
    sovereignPoolDomain: 'pool.test',
    sovereignSubdomain: 'initrode',
    providers: ['local'],
    region: 'local',
    sshPublicKey: 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f operator',
  })
  deploymentId = id
  for await (const entry of stack.client.followLogs({ id })) if (entry.kind === 'done') break
}
const getSuite = useBrowserSuite(prepare, { PDM_BYO_PROOF: 'required', PDM_BYO_RESOLVERS: tenantDns.address })

const states = pageStates.filter(({ name }) => hasTerraform || !name.startsWith('deployment'))

interface View extends OpenOptions {
  readonly name: string
  readonly hasScreenshot: boolean
  /** Whether dialogs, errors and empty states are checked too. */
  readonly hasStates?: boolean
}

const views: readonly View[] = [
  { name: 'wide-light', width: 1_280, height: 800, colorScheme: 'light', hasScreenshot: true, hasStates: true },
  { name: 'wide-dark', width: 1_280, height: 800, colorScheme: 'dark', hasScreenshot: true },
  { name: 'narrow-light', width: 320, height: 640, colorScheme: 'light', hasScreenshot: true },
  { name: 'narrow-dark', width: 320, height: 640, colorScheme: 'dark', hasScreenshot: true, hasStates: true },
  // A page of 1,280 pixels has 640 CSS pixels at 200 % zoom.
  { name: 'zoomed', width: 640, height: 400, deviceScaleFactor: 2, hasScreenshot: false },
  { name: 'medium', width: 1_000, height: 700, hasScreenshot: false },
  { name: 'very wide', width: 2_560, height: 1_440, hasScreenshot: false },
]

interface Finding {
  readonly id: string
  readonly nodes: readonly { readonly html: string; readonly failureSummary: string }[]
}

const TAGS = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice']

/** The findings of axe, each with the first element that it is about. */
const findViolations = async (page: Page): Promise<readonly string[]> => {
  const run = `axe.run(document, { runOnly: ${JSON.stringify(TAGS)} }).then(({ violations }) => violations)`
  const violations = (await page.evaluate(run)) as readonly Finding[]
  return violations.map(({ id, nodes }) => `${id}: ${nodes[0]?.html}\n${nodes[0]?.failureSummary}`)
}

/** How far the content of the page, of a panel or of a dialog reaches beyond it, in pixels. */
const findOverflow = (page: Page): Promise<number> =>
  page.evaluate(() => {
    const elements = [document.documentElement, ...document.querySelectorAll('.panel, dialog')]
    return Math.max(...elements.map(({ scrollWidth, clientWidth }) => scrollWidth - clientWidth))
  })

const check = async (page: Page, state: Pick<PageState, 'name' | 'hasScreenshot'>, view: View): Promise<void> => {
  expect(await findOverflow(page), `${state.name}, ${view.name}: pixels of overflow`).toBe(0)
  expect(await findViolations(page), `${state.name}, ${view.name}`).toEqual([])
  if (screenshots === undefined || !view.hasScreenshot || state.hasScreenshot === false) return
  await mkdir(screenshots, { recursive: true })
  await writeFile(join(screenshots, `${state.name}-${view.name}.png`), toPalettePng(await page.screenshot()))
}

const checkStates = async (view: View, chosen: readonly PageState[]): Promise<void> => {
  const { browser, origin, stack } = getSuite()
  const { context, page, faults } = await openPage(browser, origin, view)
  await page.addInitScript({ path: axePath })
  await page.goto(`${origin}/console`)
  await page.getByLabel('Operator token').waitFor()
  await check(page, { name: 'sign-in' }, view)
  await signIn(page, origin, stack.api.operatorToken)
  for (const state of chosen) {
    await page.goto(`${origin}/console${state.path.replace('{deployment}', deploymentId)}`)
    await state.prepare(page)
    await check(page, state, view)
  }
  await context.close()
  expect(faults).toEqual([])
}

describe.skipIf(skipsBrowser).each(views)('$name', view => {
  test('every page can be read and used', async () => {
    await checkStates(
      view,
      states.filter(({ isState }) => !isState || view.hasStates),
    )
  })
})

describe.skipIf(skipsBrowser)('a stopped zone', () => {
  beforeAll(async () => {
    if (skipsBrowser) return
    const { stack } = getSuite()
    await outdateDatabase(stack)
    await stack.client.updateName({ domain: 'pool.test', subdomain: 'wayne', loadBalancerIP: '203.0.113.150' })
  })

  test.each(views.filter(({ hasStates }) => hasStates))('$name', view => checkStates(view, stoppedZoneStates))
})

import { findProgram } from '@pool/dev/server-process'
import { type Browser, type BrowserContext, chromium, type Page } from 'playwright-core'
import { DEFAULT_VIEW } from './views.ts'

const path = ['chromium', 'chromium-browser', 'google-chrome'].map(findProgram).find(found => found !== undefined)

/** Undefined: Chromium is installed. */
export const missingChromium =
  path === undefined ? 'Chromium is not installed: apt-get install chromium, to use the console in it.' : undefined

/** As root, Chromium has no sandbox; the other flags keep it from calling other hosts. */
const FLAGS = [
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--disable-dev-shm-usage',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
]

/** Ends a wait that hangs, before the time of its test is over: the error names what did not happen. */
const HANG_MS = 120_000

/** `localHost`: resolves to this machine. */
export const launchChromium = async (localHost: string): Promise<Browser> => {
  const rules = [`--host-resolver-rules=MAP ${localHost} 127.0.0.1`]
  return chromium.launch({ ...(path === undefined ? {} : { executablePath: path }), args: [...FLAGS, ...rules] })
}

export interface Visitor {
  readonly context: BrowserContext
  readonly page: Page
  /** What the page reported: errors of scripts, violations of the policy, requests to other hosts. */
  readonly faults: string[]
}

/** Opens a page whose faults are recorded. */
export const openPage = async (browser: Browser, origin: string): Promise<Visitor> => {
  const context = await browser.newContext({
    viewport: { width: DEFAULT_VIEW.width, height: DEFAULT_VIEW.height },
    colorScheme: DEFAULT_VIEW.colorScheme,
    reducedMotion: 'reduce',
    locale: 'en-GB',
    timezoneId: 'Europe/Berlin',
  })
  context.setDefaultTimeout(HANG_MS)
  const page = await context.newPage()
  const faults: string[] = []
  page.on('pageerror', error => faults.push(String(error)))
  page.on('console', message => {
    // A page over plain HTTP has no use for this header.
    const isExpected = /^(?:Failed to load resource|The Cross-Origin-Opener-Policy header has been ignored)/
    if (message.type() === 'error' && !isExpected.test(message.text())) faults.push(message.text())
  })
  page.on('request', request => {
    const url = request.url()
    if (!url.startsWith(origin) && !/^(?:data|blob|about):/.test(url)) faults.push(`request to ${url}`)
  })
  page.on('dialog', async dialog => {
    faults.push(`dialog: ${dialog.message()}`)
    await dialog.dismiss()
  })
  return { context, page, faults }
}

/** Signs in as a person does. */
export const signIn = async (page: Page, origin: string, token: string): Promise<void> => {
  await page.goto(`${origin}/console`)
  await page.getByLabel('Operator token').fill(token)
  await page.getByRole('button', { name: 'Sign in' }).click()
  await page.getByRole('heading', { name: 'Overview', level: 1 }).waitFor()
}

import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Page } from 'playwright-core'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { openPage, signIn, type Visitor } from '../support/browser.ts'
import { findKept } from '../support/secrets.ts'
import { skipsBrowser, useBrowserSuite } from '../support/session.ts'

// What other clients have stored is text. Secrets do not stay in the browser. Other origins get nothing.

const MARKUP = '<img src=x onerror=alert(1)><script>alert(2)</script>'
const ESCAPES = '\u001b]0;owned\u0007\u001b[2J\u001b[31mred\u202etxt'
const LINES = 30_000

const DEPLOYMENT_ID = '3f2b8f8e-0000-4000-8000-00000000c0de'

const getSuite = useBrowserSuite(async ({ client }) => {
  await client.reserveAndCommit({
    domain: 'pool.test',
    subdomain: 'markup',
    createdBy: MARKUP,
    loadBalancerIP: '203.0.113.10',
  })
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
afterEach(() => (skipsBrowser ? undefined : visitor.context.close()))

describe.skipIf(skipsBrowser)('text of other clients', () => {
  test('is shown as it is, and nothing of it runs', async () => {
    await page.goto(`${getSuite().origin}/console/names/pool.test/markup`)
    await page.getByText(MARKUP).first().waitFor()
    await page.goto(`${getSuite().origin}/console/names?q=markup`)
    await page.getByText(MARKUP).first().waitFor()
    expect(await page.locator('img, script:not([src])').count()).toBe(0)
    expect(visitor.faults).toEqual([])
  })

  test('in a log of any length is bounded, and its escape sequences are visible', async () => {
    const { origin } = getSuite()
    await page.route('**/api/v1/deployments/*/logs', route => {
      const line = (message: string) =>
        JSON.stringify({ time: '2026-01-31T12:00:00.000Z', phase: 'apply', level: 'error', message })
      const events = Array.from(
        { length: LINES },
        (_, index) => `id: ${index + 1}\ndata: ${line(`line ${index + 1}`)}\n\n`,
      )
      const last = [
        `id: ${LINES + 1}\ndata: ${line('x'.repeat(1_000_000))}\n\n`,
        `id: ${LINES + 2}\ndata: ${line(ESCAPES + MARKUP)}\n\n`,
      ]
      return route.fulfill({ contentType: 'text/event-stream', body: [...events, ...last].join('') })
    })
    await page.route(`**/api/v1/deployments/${DEPLOYMENT_ID}`, route =>
      route.fulfill({
        json: {
          id: DEPLOYMENT_ID,
          status: 'failed',
          startedAt: '2026-01-31T12:00:00.000Z',
          finishedAt: '2026-01-31T12:00:00.000Z',
          orgName: MARKUP,
          sovereignFQDN: 'log.example',
          providers: ['local'],
          region: 'local',
          objectStorageRegion: '',
          objectStorageBucket: '',
          numEvents: LINES + 2,
          error: ESCAPES + MARKUP,
        },
      }),
    )
    await page.goto(`${origin}/console/deployments/${DEPLOYMENT_ID}`)
    await page
      .getByText(`20,000 of 20,000 lines; ${(LINES + 2 - 20_000).toLocaleString('en')} earlier ones are not kept`)
      .waitFor()
    await page.locator('.log .message').filter({ hasText: '␛]0;owned␇␛[2J␛[31mred<U+202E>txt' }).waitFor()
    expect(await page.locator('.log .line').count()).toBeLessThan(200)
    expect(await page.locator('.log img').count()).toBe(0)
    expect(await page.title()).not.toContain('owned')
    expect(visitor.faults).toEqual([])
  })
})

describe.skipIf(skipsBrowser)('the token', () => {
  test('is in no storage, in no history and, after a collection, not in memory', async () => {
    const { stack } = getSuite()
    expect(await findKept(page, [stack.api.operatorToken])).toEqual([])
  })

  test('the cookie of the session cannot be read by a script', async () => {
    const [cookie] = await visitor.context.cookies()
    expect(cookie).toMatchObject({ httpOnly: true, sameSite: 'Strict' })
    expect(await page.evaluate(() => document.cookie)).toBe('')
  })

  test('of an address of `pnpm start` leave the address and the history', async () => {
    const { browser, origin, stack } = getSuite()
    const other = await openPage(browser, origin)
    await other.page.goto(`${origin}/console#token=${stack.api.operatorToken}`)
    await other.page.getByRole('heading', { name: 'Overview' }).waitFor()
    const session = await other.context.newCDPSession(other.page)
    const { entries } = await session.send('Page.getNavigationHistory')
    expect([...entries.map(({ url }) => url), other.page.url()].join('\n')).not.toContain(stack.api.operatorToken)
    await other.context.close()
  })
})

describe.skipIf(skipsBrowser)('a session', () => {
  test('is not started with a wrong token', async () => {
    const { browser, origin } = getSuite()
    const other = await openPage(browser, origin)
    await other.page.goto(`${origin}/console`)
    await other.page.getByLabel('Operator token').fill('wrong')
    await other.page.getByRole('button', { name: 'Sign in' }).click()
    await other.page.getByRole('alert').waitFor()
    expect(await other.context.cookies()).toEqual([])
    await other.context.close()
  })

  test('that has ended in the database leads to the sign-in, with the reason', async () => {
    const { stack, origin } = getSuite()
    await page.goto(`${origin}/console/zones`)
    await page.getByRole('heading', { name: 'Zones', level: 1 }).waitFor()
    await stack.sql`delete from operator_sessions`
    await page.getByRole('link', { name: 'Deployments', exact: true }).click()
    await page.getByText('The session has ended').waitFor()
    await page.getByLabel('Operator token').waitFor()
  })

  test('continues when the API has been killed and has started again', async () => {
    const { stack, origin } = getSuite()
    await page.goto(`${origin}/console/names`)
    await page.getByText('markup').first().waitFor()
    await stack.api.kill()
    await page.getByRole('link', { name: 'Zones' }).click()
    await page.getByRole('link', { name: 'pool.test' }).waitFor()
    expect(visitor.faults.filter(fault => !/Failed|EventSource|ERR_/.test(fault))).toEqual([])
  })

  test('is of no use to a page of another origin, in a frame or from a script', async () => {
    const { stack, origin } = getSuite()
    const server = createServer((_, response) => {
      response.setHeader('Content-Type', 'text/html')
      response.end(`<iframe src="${origin}/console"></iframe>`)
    })
    await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
    const { port } = server.address() as AddressInfo
    const other = await visitor.context.newPage()
    await other.goto(`http://127.0.0.1:${port}/`)
    const outcome = await other.evaluate(async target => {
      const post = (path: string) =>
        fetch(`${target}${path}`, { method: 'POST', credentials: 'include', mode: 'no-cors', body: '{}' }).then(
          String,
          String,
        )
      const read = await fetch(`${target}/api/v1/names`, { credentials: 'include' }).then(r => r.text(), String)
      await post('/api/v1/pool/pool.test/converge')
      return read
    }, origin)
    expect(outcome).toContain('TypeError')
    const frame = other.frames().find(inner => inner.parentFrame() !== null)
    expect(await frame?.locator('input').count()).toBe(0)
    const [cookie] = await visitor.context.cookies()
    const response = await fetch(`${origin}/api/v1/pool/pool.test/release?sub=markup`, {
      method: 'DELETE',
      headers: { Cookie: `${cookie?.name}=${cookie?.value}` },
    })
    expect(response.status).toBe(403)
    const [row] = await stack.sql`select state from pool_allocations where subdomain = 'markup'`
    expect(row?.state).toBe('active')
    await other.close()
    server.close()
  })
})

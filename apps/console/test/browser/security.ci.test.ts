import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Page } from 'playwright-core'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { openPage, signIn, type Visitor } from '../support/browser.ts'
import { findKept } from '../support/secrets.ts'
import { writeForeignRecord } from '../support/seed.ts'
import { skipsBrowser, useBrowserSuite } from '../support/session.ts'

// What other clients have stored is text. Secrets do not stay in the browser. Other origins get nothing.

const MARKUP = '<img src=x onerror=alert(1)><script>alert(2)</script>'
/** A holder has no spaces. */
const MARKUP_HOLDER = '<img/src=x/onerror=alert(3)>'
const ESCAPES = '\u001b]0;owned\u0007\u001b[2J\u001b[31mred\u202etxt'
const LINES = 30_000

const DEPLOYMENT_ID = '3f2b8f8e-0000-4000-8000-00000000c0de'

const getSuite = useBrowserSuite(async stack => {
  const { client, leases, sql } = stack
  await client.reserveAndCommit({
    domain: 'pool.test',
    subdomain: 'markup',
    createdBy: MARKUP,
    loadBalancerIP: '203.0.113.10',
  })
  await writeForeignRecord(stack, 'note.markup.pool.test', 'TXT', [`"${MARKUP}"`])
  await leases.acquire(MARKUP, { holder: MARKUP_HOLDER, generation: 0, ttlMs: 3_600_000 })
  await sql`
    insert into dns_former_records (zone, provider_kind, name, type, record_values)
    values ('pool.test', 'powerdns', 'former.pool.test', 'TXT', ${[MARKUP]})`
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
  test.each([
    ['the creator of a name', '/names?q=markup', MARKUP],
    ['the creator, in the history of a name', '/names/pool.test/markup', `for ${MARKUP}`],
    ['a record of another writer', '/names/pool.test/markup', `"${MARKUP}"`],
    ['a record at an earlier provider', '/zones/pool.test', MARKUP],
    ['a slot', '/leases', MARKUP],
    ['a holder', '/leases', MARKUP_HOLDER],
    ['a slot and its history', `/leases/${encodeURIComponent(MARKUP)}`, `${MARKUP_HOLDER} acquired it`],
    ['the text of a search', `/names?q=${encodeURIComponent(MARKUP)}`, 'No name matches.'],
  ])('is shown as it is, and nothing of it runs: %s', async (_, path, text) => {
    await page.goto(`${getSuite().origin}/console${path}`)
    await page.getByText(text).first().waitFor()
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
    await page
      .locator('.log .message')
      .filter({ hasText: '<ESC>]0;owned<BEL><ESC>[2J<ESC>[31mred<U+202E>txt' })
      .waitFor()
    expect(await page.locator('.log .line').count()).toBeLessThan(200)
    expect(await page.locator('.log img').count()).toBe(0)
    expect(await page.title()).not.toContain('owned')
    expect(visitor.faults).toEqual([])
  })
})

describe.skipIf(skipsBrowser)('the token', () => {
  test('is in no storage, in no history and, after a collection, not in memory', async () => {
    const { stack } = getSuite()
    const [cookie] = await visitor.context.cookies()
    expect(await findKept(page, [stack.api.operatorToken, cookie?.value ?? ''])).toEqual([])
  })

  test.each([
    ['a variable', "globalThis.kept = ['kept', 'in', 'the', 'page'].join('-')"],
    ['a storage', "sessionStorage.setItem('x', ['kept', 'in', 'the', 'page'].join('-'))"],
    ['the history', "history.pushState(null, '', '?' + ['kept', 'in', 'the', 'page'].join('-'))"],
    ['an input', "document.body.append(Object.assign(document.createElement('input'), { value: 'kept-in-the-page' }))"],
  ])('a secret in %s would be found', async (_, script) => {
    await page.evaluate(script)
    expect(await findKept(page, ['kept-in-the-page', 'not-in-the-page'])).toEqual(['kept-in-the-page'])
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

/** Runs `visit` on a page of another port of this host, to which the browser sends the cookie of the session. */
const onOtherOrigin = async <Result>(html: string, visit: (other: Page) => Promise<Result>): Promise<Result> => {
  const server = createServer((_, response) => response.setHeader('Content-Type', 'text/html').end(html))
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  const other = await visitor.context.newPage()
  try {
    await other.goto(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`)
    return await visit(other)
  } finally {
    await other.close()
    server.closeAllConnections()
    server.close()
  }
}

/** Sends a request that needs no preflight, and resolves when it has ended. */
const postFrom = (from: Page, subdomain: string): Promise<void> =>
  from.evaluate(
    async ([url = '', body = '']) => {
      await fetch(url, { method: 'POST', credentials: 'include', mode: 'no-cors', body })
    },
    [`${getSuite().origin}/api/v1/pool/pool.test/reserve`, JSON.stringify({ subdomain })],
  )

const isReserved = async (subdomain: string): Promise<boolean> => {
  const rows = await getSuite().stack.sql`select from pool_allocations where subdomain = ${subdomain}`
  return rows.length > 0
}

describe.skipIf(skipsBrowser)('a page of another origin', () => {
  test('cannot change anything with a script; a page of the console can, with the same request', async () => {
    await postFrom(page, 'own-page')
    expect(await isReserved('own-page')).toBe(true)
    await onOtherOrigin('', other => postFrom(other, 'other-page'))
    expect(await isReserved('other-page')).toBe(false)
  })

  test('cannot change anything with a form', async () => {
    const action = `${getSuite().origin}/api/v1/pool/pool.test/reserve`
    const field = `<input type="hidden" name='{"subdomain":"by-form","x":"' value='"}'>`
    const form = `<form method="post" enctype="text/plain" action="${action}">${field}<button>Send</button></form>`
    const text = await onOtherOrigin(form, async other => {
      await other.getByRole('button').click()
      await other.waitForURL(action)
      return other.locator('body').textContent()
    })
    expect(text).toContain('forbidden')
    expect(await isReserved('by-form')).toBe(false)
  })

  test('reads nothing, also not in a frame', async () => {
    const { origin } = getSuite()
    await onOtherOrigin(`<iframe src="${origin}/console"></iframe>`, async other => {
      const read = await other.evaluate(
        target => fetch(`${target}/api/v1/names`, { credentials: 'include' }).then(r => r.text(), String),
        origin,
      )
      expect(read).toContain('TypeError')
      const frame = other.frames().find(inner => inner.parentFrame() !== null)
      expect(await frame?.locator('input').count()).toBe(0)
    })
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
    // Not a click of Playwright: the page may have read its zones again, and have left for the sign-in.
    await page.evaluate(() => document.querySelector<HTMLElement>('a[href="/console/deployments"]')?.click())
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

  test('whose id was stolen changes nothing without a page of this origin', async () => {
    const { stack, origin } = getSuite()
    const [cookie] = await visitor.context.cookies()
    const send = (headers: Record<string, string>) =>
      fetch(`${origin}/api/v1/pool/pool.test/release?sub=markup`, {
        method: 'DELETE',
        headers: { Cookie: `${cookie?.name}=${cookie?.value}`, ...headers },
      })
    for (const headers of [{}, { Origin: 'https://evil.example' }, { 'Sec-Fetch-Site': 'none' }]) {
      expect((await send(headers)).status).toBe(403)
    }
    const [row] = await stack.sql`select state from pool_allocations where subdomain = 'markup'`
    expect(row?.state).toBe('active')
  })
})

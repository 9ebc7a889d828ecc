import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createSignInCode } from '@pool/runtime/service/sign-in-code'
import type { Page } from 'playwright-core'
import { describe, expect, test } from 'vitest'
import { openPage } from '../support/browser.ts'
import { findKept } from '../support/secrets.ts'
import { writeForeignRecord } from '../support/seed.ts'
import type { ConsoleSuite } from '../support/suite.ts'

const MARKUP = '<img src=x onerror=alert(1)><script>alert(2)</script>'
/** A holder has no spaces. */
const MARKUP_HOLDER = '<img/src=x/onerror=alert(3)>'
const ESCAPES = '\u001b]0;owned\u0007\u001b[2J\u001b[31mred\u202etxt'
const LINES = 20_500
const DEPLOYMENT_ID = '3f2b8f8e-0000-4000-8000-00000000c0de'

/** Signing in, and what the browser keeps of the token. */
export const testToken = (suite: ConsoleSuite): void => {
  describe('the token', () => {
    test('starts a session if it is one of the service', async () => {
      const { page } = suite
      await suite.visitor.context.clearCookies()
      await suite.open('')
      await page.getByLabel('Operator token').fill('wrong')
      await suite.press('Sign in')
      await page.getByRole('alert').waitFor()
      expect(await suite.visitor.context.cookies()).toEqual([])
      await suite.check('sign-in')
      await suite.signIn()
      await page.locator('.plot canvas').nth(3).waitFor()
      const [cookie] = await suite.visitor.context.cookies()
      expect(cookie).toMatchObject({ httpOnly: true, sameSite: 'Strict' })
      expect(await page.evaluate(() => document.cookie)).toBe('')
      const kept = await findKept(page, [suite.stack.api.operatorToken, cookie?.value ?? ''])
      expect(kept, 'in a storage, in the history or, after a collection, in memory').toEqual([])
      await suite.check('overview')
    })

    test('would be found in a variable, a storage, the history and an input', async () => {
      const { page } = suite
      await page.evaluate(() => {
        const join = (place: string) => ['kept', 'in', place].join('-')
        Object.assign(globalThis, { kept: join('variable') })
        sessionStorage.setItem('x', join('storage'))
        history.pushState(null, '', `?${join('history')}`)
        document.body.append(Object.assign(document.createElement('input'), { value: join('input') }))
      })
      const secrets = ['kept-in-variable', 'kept-in-storage', 'kept-in-history', 'kept-in-input']
      expect(await findKept(page, [...secrets, 'not-in-the-page'])).toEqual(secrets)
    })

    test('is not in the link of `pnpm start`, whose code signs in once', async () => {
      const { browser, origin, stack } = suite
      const link = `${origin}/console#code=${createSignInCode(stack.api.operatorToken, Date.now())}`
      const [first, second] = [await openPage(browser, origin), await openPage(browser, origin)]
      const overview = first.page.getByRole('heading', { name: 'Overview' })
      await first.page.goto(link)
      await overview.waitFor()
      const session = await first.context.newCDPSession(first.page)
      const { entries } = await session.send('Page.getNavigationHistory')
      expect([...entries.map(({ url }) => url), first.page.url()].join('\n')).not.toContain('#code')
      await second.page.goto(link)
      await second.page.getByText('This link signs in once').waitFor()
      // A browser that has a session keeps it.
      await first.page.goto('about:blank')
      await first.page.goto(link)
      await overview.waitFor()
      await first.context.close()
      await second.context.close()
    })
  })
}

/** What other clients have stored is text. Other origins get nothing. A session ends with its row. */
export const testSecurity = (suite: ConsoleSuite): void => {
  describe('text of other clients', () => {
    test('is shown as it is, and nothing of it runs', async () => {
      const { page, stack } = suite
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
      for (const [path, ...texts] of [
        ['/names?q=markup', MARKUP],
        ['/names/pool.test/markup', `for ${MARKUP}`, `"${MARKUP}"`],
        ['/zones/pool.test', MARKUP],
        ['/leases', MARKUP, MARKUP_HOLDER],
        [`/leases/${encodeURIComponent(MARKUP)}`, `${MARKUP_HOLDER} acquired it`],
        [`/names?q=${encodeURIComponent(MARKUP)}`, 'No name matches.'],
      ] as const) {
        await suite.open(path)
        for (const text of texts) await suite.seeText(text)
        expect(await page.locator('img, script:not([src])').count(), path).toBe(0)
      }
    })

    test('in a log of any length is bounded, and its escape sequences are visible', async () => {
      const { page } = suite
      const time = '2026-01-31T12:00:00.000Z'
      const toEvent = (message: string, index: number) =>
        `id: ${index + 1}\ndata: ${JSON.stringify({ time, phase: 'apply', level: 'error', message })}\n\n`
      const messages = [
        ...Array.from({ length: LINES }, (_, index) => `line ${index + 1}`),
        'x'.repeat(1_000_000),
        ESCAPES + MARKUP,
      ]
      await page.route('**/api/v1/deployments/*/logs', route =>
        route.fulfill({ contentType: 'text/event-stream', body: messages.map(toEvent).join('') }),
      )
      await page.route(`**/api/v1/deployments/${DEPLOYMENT_ID}`, route =>
        route.fulfill({
          json: {
            id: DEPLOYMENT_ID,
            status: 'failed',
            startedAt: time,
            finishedAt: time,
            orgName: MARKUP,
            sovereignFQDN: 'log.example',
            providers: ['local'],
            region: 'local',
            objectStorageRegion: '',
            objectStorageBucket: '',
            numEvents: messages.length,
            error: ESCAPES + MARKUP,
          },
        }),
      )
      await suite.open(`/deployments/${DEPLOYMENT_ID}`)
      await suite.seeText(`20,000 of 20,000 lines; ${messages.length - 20_000} earlier ones are not kept`)
      await page
        .locator('.log .message')
        .filter({ hasText: '<ESC>]0;owned<BEL><ESC>[2J<ESC>[31mred<U+202E>txt' })
        .waitFor()
      expect(await page.locator('.log .line').count()).toBeLessThan(200)
      expect(await page.locator('.log img').count()).toBe(0)
      expect(await page.title()).not.toContain('owned')
    })
  })

  /** Runs `visit` on a page of another port of this host, to which the browser sends the cookie of the session. */
  const onOtherOrigin = async <Result>(html: string, visit: (other: Page) => Promise<Result>): Promise<Result> => {
    const server = createServer((_, response) => response.setHeader('Content-Type', 'text/html').end(html))
    await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
    const other = await suite.visitor.context.newPage()
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
      [`${suite.origin}/api/v1/pool/pool.test/reserve`, JSON.stringify({ subdomain })],
    )
  const isReserved = async (subdomain: string): Promise<boolean> => {
    const rows = await suite.stack.sql`select from pool_allocations where subdomain = ${subdomain}`
    return rows.length > 0
  }

  describe('a page of another origin', () => {
    test('cannot change anything with a script; a page of the console can, with the same request', async () => {
      await postFrom(suite.page, 'own-page')
      expect(await isReserved('own-page')).toBe(true)
      await onOtherOrigin('', other => postFrom(other, 'other-page'))
      expect(await isReserved('other-page')).toBe(false)
    })

    test('cannot change anything with a form', async () => {
      const action = `${suite.origin}/api/v1/pool/pool.test/reserve`
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
      await onOtherOrigin(`<iframe src="${suite.origin}/console"></iframe>`, async other => {
        const read = await other.evaluate(
          target => fetch(`${target}/api/v1/names`, { credentials: 'include' }).then(r => r.text(), String),
          suite.origin,
        )
        expect(read).toContain('TypeError')
        const frame = other.frames().find(inner => inner.parentFrame() !== null)
        expect(await frame?.locator('input').count()).toBe(0)
      })
    })
  })

  describe('a session', () => {
    test('whose id was stolen changes nothing without a page of this origin', async () => {
      const [cookie] = await suite.visitor.context.cookies()
      const send = (headers: Record<string, string>) =>
        fetch(`${suite.origin}/api/v1/pool/pool.test/release?sub=markup`, {
          method: 'DELETE',
          headers: { Cookie: `${cookie?.name}=${cookie?.value}`, ...headers },
        })
      for (const headers of [{}, { Origin: 'https://evil.example' }, { 'Sec-Fetch-Site': 'none' }]) {
        expect((await send(headers)).status).toBe(403)
      }
      const [row] = await suite.stack.sql`select state from pool_allocations where subdomain = 'markup'`
      expect(row?.state).toBe('active')
    })

    test('continues when the API has been killed and has started again', async () => {
      const { page, stack, visitor } = suite
      await suite.open('/names')
      await suite.seeText('markup')
      await stack.api.kill()
      await page.getByRole('link', { name: 'Zones' }).click()
      await page.getByRole('link', { name: 'pool.test' }).waitFor()
      const faults = visitor.faults.splice(0)
      expect(faults.filter(fault => !/Failed|EventSource|ERR_/.test(fault))).toEqual([])
    })

    test('that has ended in the database leads to the sign-in, with the reason', async () => {
      const { page, stack } = suite
      await suite.open('/zones')
      await page.getByRole('heading', { name: 'Zones', level: 1 }).waitFor()
      await stack.sql`delete from operator_sessions`
      // Not a click of Playwright: the page may have read its zones again, and have left for the sign-in.
      await page.evaluate(() => document.querySelector<HTMLElement>('a[href="/console/deployments"]')?.click())
      await suite.seeText('The session has ended')
      await suite.signIn()
    })
  })
}

import { describe, expect, test } from 'vitest'
import type { ConsoleSuite } from '../support/suite.ts'

/** What an operator types: in the search, in the palette, and instead of a pointer. */
export const testKeyboard = (suite: ConsoleSuite): void => {
  const dialog = () => suite.page.getByRole('dialog')
  const press = (key: string) => suite.page.keyboard.press(key)
  const type = (text: string) => suite.page.keyboard.type(text)
  const focused = () => suite.page.evaluate(() => document.activeElement?.textContent ?? '')
  const openPalette = async (text: string) => {
    await press('Control+k')
    await suite.page.getByRole('combobox').fill(text)
  }

  describe.each([
    {
      path: '/names',
      keys: 'gn',
      label: 'Search',
      link: 'Names',
      query: 'q',
      text: 'tyrell',
      found: 'tyrell.pool.test',
      first: 'acme.pool.test',
    },
    {
      path: '/leases',
      keys: 'gl',
      label: 'Slots that begin with',
      link: 'Leases',
      query: 'prefix',
      text: 'region-pair/p',
      found: 'region-pair/primary',
      first: 'region-pair/backup',
    },
  ])('the search of $path', ({ path, keys, label, link, query, text, found, first }) => {
    const box = () => suite.page.getByRole('searchbox', { name: label })
    const readQuery = () => new URL(suite.page.url()).searchParams.get(query)

    test('keeps the letters that are typed while the address changes', async () => {
      const { page } = suite
      await suite.open(path)
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

    test('has the focus after a key that is pressed the moment the page appears', async () => {
      const { page } = suite
      await suite.open('')
      await page.getByRole('heading', { name: 'Overview' }).waitFor()
      await page.evaluate(() => {
        // Before the browser paints the page.
        const pressWhenShown = new MutationObserver(() => {
          if (document.querySelector('main input[type="search"]') === null) return
          pressWhenShown.disconnect()
          document.body.dispatchEvent(new KeyboardEvent('keydown', { key: '/', bubbles: true }))
        })
        pressWhenShown.observe(document.body, { childList: true, subtree: true })
      })
      await type(keys)
      await page.getByRole('link', { name: first }).waitFor()
      await type(text)
      await expect.poll(readQuery).toBe(text)
      await page.getByRole('link', { name: found }).waitFor()
    })

    test('is empty after a link to the page, also while the typing pauses', async () => {
      const { page } = suite
      await suite.open(`${path}?${query}=none`)
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

  describe('the keyboard', () => {
    test('returns to where it was after a dialog, and to the heading after an action', async () => {
      const { page } = suite
      await suite.open('/names/pool.test/hooli')
      const opener = page.getByRole('button', { name: 'Change the target' })
      for (const open of ['Enter', 'Control+k', '?']) {
        await opener.focus()
        await press(open)
        await dialog().waitFor()
        expect(await focused()).not.toBe('Change the target')
        if (open === '?') await suite.check('the shortcuts')
        await press('Escape')
        await dialog().waitFor({ state: 'detached' })
        expect(await focused()).toBe('Change the target')
      }
      await press('Enter')
      await type('203.0.113.124')
      await dialog().getByText('gets the new address').waitFor()
      await press('Enter')
      await suite.seeDone('hooli.pool.test points to 203.0.113.124')
      expect(await focused()).toBe('hooli.pool.test')
    })

    test('runs the actions of the page, and opens names, from the palette', async () => {
      const { page } = suite
      await suite.open('')
      await page.getByRole('heading', { name: 'Overview' }).waitFor()
      await type('gz')
      await page.getByRole('link', { name: 'pool.test', exact: true }).waitFor()
      await openPalette('n')
      await page.getByRole('option').nth(2).waitFor()
      await suite.check('the palette')
      expect(await page.getByRole('option', { name: 'Republish' }).count()).toBe(0)
      await page.getByRole('combobox').fill('nothing-like-this')
      await suite.seeText('Nothing found.')
      await suite.check('an empty palette')
      await press('Escape')
      await page.getByRole('link', { name: 'pool.test' }).press('Enter')
      await page.getByRole('button', { name: 'Republish' }).waitFor()
      await openPalette('republ')
      await page.getByRole('option', { name: 'Republish' }).waitFor()
      await press('Enter')
      await dialog().getByText('there is nothing to republish').waitFor()
      await press('Escape')
      await openPalette('cyber')
      await page.getByRole('option', { name: /cyberdyne\.pool\.test/ }).waitFor()
      await press('Enter')
      await page.getByRole('heading', { name: 'cyberdyne.pool.test' }).waitFor()
    })

    test('skips the navigation, which is a menu on a narrow page', async () => {
      const { page } = suite
      await suite.open('/zones')
      // A page that appears takes the focus.
      await page.getByRole('heading', { name: 'Zones', level: 1 }).waitFor()
      await page.getByRole('link', { name: 'Skip to the content' }).focus()
      await press('Enter')
      await expect.poll(() => page.evaluate(() => document.activeElement?.id)).toBe('content')
      await page.setViewportSize({ width: 320, height: 640 })
      await suite.press('Menu')
      await page.getByRole('link', { name: 'Bucket claims' }).waitFor()
      await suite.check('the menu')
      await page.setViewportSize({ width: 1_280, height: 800 })
    })

    test('is enough to sign in, find a name, change its address, and sign out in every tab', async () => {
      const { page, stack } = suite
      const untilFocused = async (text: string) => {
        for (let steps = 0; steps < 10 && (await focused()) !== text; steps += 1) await press('Tab')
        await press('Enter')
      }
      const shownNames = () => page.getByRole('table', { name: 'Names' }).locator('tbody a').allInnerTexts()
      await suite.visitor.context.clearCookies()
      await suite.open('')
      await expect.poll(() => page.evaluate(() => document.activeElement?.tagName)).toBe('INPUT')
      await type(stack.api.operatorToken)
      await press('Enter')
      await page.getByRole('heading', { name: 'Overview' }).waitFor()
      await type('gn')
      await page.getByRole('heading', { name: 'Names', level: 1 }).waitFor()
      await press('/')
      await type('tyrell')
      await expect.poll(shownNames).toEqual(['tyrell.pool.test'])
      await untilFocused('tyrell.pool.test')
      await page.getByRole('heading', { name: 'tyrell.pool.test' }).waitFor()
      await page.getByRole('button', { name: 'Change the target' }).waitFor()
      await untilFocused('Change the target')
      await dialog().getByLabel('New target').waitFor()
      await type('203.0.113.123')
      await dialog().getByText('gets the new address').waitFor()
      await untilFocused('Change the target')
      await suite.seeDone('tyrell.pool.test points to 203.0.113.123')

      const other = await suite.visitor.context.newPage()
      await other.goto(`${suite.origin}/console/zones`)
      await other.getByRole('link', { name: 'pool.test' }).waitFor()
      await openPalette('sign')
      await page.getByRole('option', { name: 'Sign out' }).waitFor()
      await press('Enter')
      await page.getByLabel('Operator token').waitFor()
      await other.getByText('The session has ended').waitFor()
      expect(await other.title()).toBe('Sign in · Operator console')
      await other.close()
      await suite.signIn()
    })
  })

  test('a page of nothing says so', async () => {
    for (const [path, text] of [
      ['/no-such-page', 'The console has no page with this address.'],
      ['/names/pool.test/nobody', 'The name has no history.'],
      ['/names/pool.test/-bad-', 'The subdomain must be'],
      ['/zones/other.test', 'The service has no zone of this name.'],
      ['/deployments?status=destroyed', 'No deployment is destroyed.'],
      ['/deployments/00000000-0000-4000-8000-000000000000', 'No such deployment.'],
      ['/buckets', 'No deployment has claimed a bucket.'],
      ['/leases?prefix=none', 'No slot begins with this text.'],
      ['/leases/none', 'The slot has no history.'],
    ] as const) {
      await suite.open(path)
      await suite.seeText(text)
      await suite.check(path)
    }
  })
}

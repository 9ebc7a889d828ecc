import { isProof } from '@pool/test-kit/proof-size.ts'
import { describe, expect, test } from 'vitest'
import type { ConsoleSuite } from '../support/suite.ts'
import { ALL_VIEWS, DEFAULT_VIEW } from '../support/views.ts'

/** A browser lays out a page of this size slowly: outside the proof, in the narrowest and in a wide one, each with its colours. */
const views = isProof ? ALL_VIEWS : ALL_VIEWS.slice(1, 3)

/** The API reference, which the operator listener serves too. */
export const testReference = (suite: ConsoleSuite): void => {
  describe('the API reference', () => {
    const operation = (path: string) => suite.page.locator('.opblock-summary-path', { hasText: path }).first()

    const expectFit = async () => {
      const { page, visitor } = suite
      for (const { colorScheme, width, height } of views) {
        await page.setViewportSize({ width, height })
        await page.emulateMedia({ colorScheme })
        const isDark = () => page.evaluate(() => document.documentElement.classList.contains('dark-mode'))
        await expect.poll(isDark).toBe(colorScheme === 'dark')
        const overflow = () => page.evaluate(() => document.documentElement.scrollWidth - innerWidth)
        await expect.poll(overflow, { message: `${page.url()} at ${width} pixels` }).toBeLessThanOrEqual(0)
      }
      await page.setViewportSize(DEFAULT_VIEW)
      await page.emulateMedia({ colorScheme: DEFAULT_VIEW.colorScheme })
      expect(visitor.faults).toEqual([])
    }

    test('is linked from the console, fits each view, follows its colours, and asks no other host', async () => {
      const { page } = suite
      await suite.open('')
      await page.getByRole('link', { name: 'API reference' }).click()
      await operation('/reserve').waitFor()
      await expectFit()
    })

    // On the page of the test before, because it is slow to load.
    test('is filtered by words of an operation, shows an example of each response, and links the witness', async () => {
      const { page, visitor, origin } = suite
      if (page.url() !== `${origin}/docs`) await page.goto(`${origin}/docs`)
      await operation('/reserve').waitFor()
      await page.getByPlaceholder('Filter the operations').fill('whether a name is FREE')
      await expect.poll(() => page.locator('.opblock').count()).toBe(1)
      await operation('/check').click()
      await page.locator('.response .microlight, .response pre', { hasText: '"internal-error"' }).first().waitFor()
      expect(visitor.faults).toEqual([])
      await page.getByRole('link', { name: 'Lease witness' }).click()
      await operation('/lease/{slot}').waitFor()
      await expectFit()
    })
  })
}

import { describe, expect, test } from 'vitest'
import type { ConsoleSuite } from '../support/suite.ts'
import { ALL_VIEWS, DEFAULT_VIEW } from '../support/views.ts'

/** The API reference, which the operator listener serves too. */
export const testReference = (suite: ConsoleSuite): void => {
  describe('the API reference', () => {
    const operation = (path: string) => suite.page.locator('.opblock-summary-path', { hasText: path }).first()

    test('is linked from the console, fits each view, follows its colours, and asks no other host', async () => {
      const { page, visitor, origin } = suite
      await suite.open('')
      await page.getByRole('link', { name: 'API reference' }).click()
      await operation('/reserve').waitFor()
      await page.getByRole('link', { name: 'Lease witness' }).click()
      await operation('/lease/{slot}').waitFor()
      for (const path of ['/docs', '/docs/lease-witness']) {
        await page.goto(origin + path)
        await operation('/').waitFor()
        for (const { colorScheme, width, height } of ALL_VIEWS) {
          await page.setViewportSize({ width, height })
          await page.emulateMedia({ colorScheme })
          const isDark = () => page.evaluate(() => document.documentElement.classList.contains('dark-mode'))
          await expect.poll(isDark).toBe(colorScheme === 'dark')
          const overflow = () => page.evaluate(() => document.documentElement.scrollWidth - innerWidth)
          await expect.poll(overflow, { message: `${path} at ${width} pixels` }).toBeLessThanOrEqual(0)
        }
      }
      await page.setViewportSize(DEFAULT_VIEW)
      await page.emulateMedia({ colorScheme: DEFAULT_VIEW.colorScheme })
      expect(visitor.faults).toEqual([])
    })

    test('is filtered by words of an operation, and shows an example of each response', async () => {
      const { page, visitor, origin } = suite
      await page.goto(`${origin}/docs`)
      await operation('/reserve').waitFor()
      await page.getByPlaceholder('Filter the operations').fill('whether a name is FREE')
      await expect.poll(() => page.locator('.opblock').count()).toBe(1)
      await operation('/check').click()
      await page.locator('.response .microlight, .response pre', { hasText: '"internal-error"' }).first().waitFor()
      expect(visitor.faults).toEqual([])
    })
  })
}

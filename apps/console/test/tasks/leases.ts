import { describe, expect, test } from 'vitest'
import type { ConsoleSuite } from '../support/suite.ts'

const WIDE = { width: 1_280, height: 800 }

/** An operator looks at leases, and releases that of a dead holder. */
export const testLeases = (suite: ConsoleSuite): void => {
  const dialog = () => suite.page.getByRole('dialog')

  describe('leases', () => {
    test('are sorted, by their headers or by a list of them', async () => {
      const { page } = suite
      await suite.open('/leases?prefix=region-pair')
      await page.getByRole('link', { name: 'region-pair/primary' }).waitFor()
      await suite.check('leases')
      const slots = () => page.getByRole('table', { name: 'Leases' }).locator('tbody tr td:first-child').allInnerTexts()
      const shown = async () => (await slots()).map(text => text.split('/').at(-1))
      expect(await shown()).toEqual(['backup', 'primary'])
      expect(await page.getByLabel('Sort by').isVisible()).toBe(false)
      await suite.press('Slot')
      await page.getByRole('button', { name: 'Slot' }).click()
      await expect.poll(shown).toEqual(['primary', 'backup'])
      await page.setViewportSize({ width: 320, height: 640 })
      await page.getByLabel('Sort by').selectOption('the given order')
      await expect.poll(shown).toEqual(['backup', 'primary'])
      await page.getByLabel('Sort by').selectOption('Slot, descending')
      await expect.poll(shown).toEqual(['primary', 'backup'])
      await page.setViewportSize(WIDE)
    })

    test('show their holder, and a dead holder loses its lease on confirmation', async () => {
      const { page, stack } = suite
      await suite.open('/leases')
      await page.getByRole('link', { name: 'region-pair/primary' }).click()
      await suite.seeText('region-a/controller-0')
      await page.getByText(/5\d\smin \d+\ss/).waitFor()
      await suite.seeText('acquired it')
      await suite.check('lease')
      await suite.press('Release')
      await dialog().getByText('A previous holder may still be running.').waitFor()
      await suite.check('the release of a lease')
      const release = dialog().getByRole('button', { name: 'Release' })
      expect(await release.isDisabled()).toBe(true)
      await dialog().getByRole('checkbox').check()
      await release.click()
      await suite.seeDone('The lease region-pair/primary is free.')
      const { holder, generation } = await stack.leases.read('region-pair/primary').then(({ lease }) => lease)
      expect({ holder, generation }).toEqual({ holder: '', generation: 2 })
      await page.getByRole('listitem').filter({ hasText: 'released' }).first().waitFor()
      await suite.open('/leases?prefix=region-pair')
      const released = page.getByRole('link', { name: 'region-pair/primary' })
      await released.waitFor()
      await page.getByRole('checkbox', { name: 'Only held leases' }).check()
      await released.waitFor({ state: 'detached' })
      await suite.check('held leases')
    })

    test('are kept if the holder has renewed since', async () => {
      const { leases } = suite.stack
      await suite.open(`/leases/${encodeURIComponent('region-pair/backup')}`)
      await suite.press('Release')
      await leases.renew('region-pair/backup', { holder: 'region-b/controller-0', generation: 1, ttlMs: 3_600_000 })
      await dialog().getByRole('checkbox').check()
      await dialog().getByRole('button', { name: 'Release' }).click()
      await dialog().getByRole('alert').waitFor()
      await dialog().getByText('The lease has changed since it was read').waitFor()
      expect((await leases.read('region-pair/backup')).lease.holder).toBe('region-b/controller-0')
    })
  })
}

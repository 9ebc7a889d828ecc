import { afterAll, describe } from 'vitest'
import { seedNames, seedSamples, startTxtServer, writeOrphan } from '../support/seed.ts'
import { skipsBrowser, useConsoleSuite } from '../support/suite.ts'
import type { View } from '../support/views.ts'
import { testDeployments } from './deployments.ts'
import { testKeyboard } from './keyboard.ts'
import { testLeases } from './leases.ts'
import { testNames } from './names.ts'
import { testReference } from './reference.ts'
import { testSecurity, testToken } from './security.ts'
import { testZones } from './zones.ts'

/**
 * Everything that an operator does in the console, on one page of one browser, in this order. Each state on the way is checked
 * in each of the views.
 */
export const testConsole = async (views: readonly View[]): Promise<void> => {
  const tenantDns = await startTxtServer()
  afterAll(() => tenantDns[Symbol.asyncDispose]())
  const suite = useConsoleSuite({
    views,
    env: { PDM_BYO_PROOF: 'required', PDM_BYO_RESOLVERS: tenantDns.address },
    prepare: async ({ stack }) => {
      await seedNames(stack)
      await seedSamples(stack)
      await writeOrphan(stack, 'stray')
      const reservations = Array.from({ length: 60 }, (_, index) => `page-${String(index).padStart(2, '0')}`)
      await Promise.all(reservations.map(subdomain => stack.client.reserveName({ domain: 'pool.test', subdomain })))
    },
  })
  describe.skipIf(skipsBrowser)('an operator', () => {
    testToken(suite)
    testNames(suite)
    testZones(suite)
    testKeyboard(suite)
    testLeases(suite)
    testReference(suite)
    testDeployments(suite, tenantDns)
    testSecurity(suite)
  })
}

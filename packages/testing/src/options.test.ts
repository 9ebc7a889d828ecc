import { expect, test, vi } from 'vitest'
import { startAllocationApi, startWitness } from './index.ts'
import type { RequestFilter } from './protocol.ts'
import { createTestService } from './test-service.ts'

test.each<[string, (options: never) => Promise<unknown>, unknown, RegExp]>([
  ['pool', startAllocationApi, { pool: ['pool.test'] }, /startAllocationApi has no pool; it has pools, env/],
  ['token', startWitness, { token: 'a' }, /startWitness has no token; it has on, tokens, env/],
  ['on', startWitness, { on: 'sqlite' }, /on must be workerd or postgres/],
  ['null', startAllocationApi, null, /startAllocationApi must be given an object; it has pools, env/],
  ['text', startWitness, 'postgres', /startWitness must be given an object; it has on, tokens, env/],
  ['pools as text', startAllocationApi, { pools: 'pool.test' }, /pools must be an array/],
  ['no pools', startAllocationApi, { pools: [] }, /pools must be an array with at least one text/],
  ['tokens as text', startWitness, { tokens: 'a' }, /tokens must be an array/],
  ['an empty token', startWitness, { tokens: [''] }, /and no empty one/],
  ['env as a list', startWitness, { env: ['LOG_LEVEL=warn'] }, /env must be an object/],
  ['env with a number', startAllocationApi, { env: { PDM_NAME_COOL_OFF: 5 } }, /whose values are text/],
])('an option that would be ignored is an error: %s', async (_, start, options, message) => {
  await expect(start(options as never)).rejects.toThrow(message)
})

test.each([
  [{ methods: 'PUT' }, /filter of a fault has no methods; it has method, path/],
  [{ path: '/lease/*' }, /use a RegExp for a pattern/],
])('a filter that would match other requests is an error: %o', async (filter, message) => {
  const call = vi.fn()
  const service = createTestService('http://localhost', { call, waitForExit: async () => {} })
  for (const fault of ['dropNextRequest', 'dropNextResponse', 'partition', 'killAfterWrite'] as const) {
    await expect(service[fault](filter as RequestFilter)).rejects.toThrow(message)
  }
  expect(call).not.toHaveBeenCalled()
})

test('an older Node is named', async () => {
  const versions = vi.spyOn(process, 'versions', 'get').mockReturnValue({ ...process.versions, node: '20.20.2' })
  await expect(startWitness()).rejects.toThrow(/needs Node 24 or later, and this is 20\.20\.2/)
  versions.mockRestore()
})

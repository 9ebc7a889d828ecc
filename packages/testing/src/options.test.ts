import { beforeEach, expect, test, vi } from 'vitest'
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
  ['a pool of words', startAllocationApi, { pools: ['not a domain'] }, /pools must be texts without commas and white/],
  ['two tokens in one', startWitness, { tokens: ['a,b'] }, /tokens must be texts without commas/],
  ['options as a map', startWitness, new Map([['on', 'postgres']]), /must be given an object/],
  ['env as a map', startWitness, { env: new Map([['LOG_LEVEL', 'debug']]) }, /env must be an object/],
  ['env as a list', startWitness, { env: ['LOG_LEVEL=warn'] }, /env must be an object/],
  ['env with a number', startAllocationApi, { env: { PDM_NAME_COOL_OFF: 5 } }, /whose values are text/],
])('an option that would be ignored is an error: %s', async (_, start, options, message) => {
  await expect(start(options as never)).rejects.toThrow(message)
})

const call = vi.fn(() => Promise.resolve(1) as never)
const service = createTestService('http://localhost', { call, waitForExit: async () => {} })
const FAULTS: Readonly<Record<string, (filter: RequestFilter) => Promise<unknown>>> = {
  dropNextRequest: filter => service.dropNextRequest(filter),
  dropNextResponse: filter => service.dropNextResponse(filter),
  partition: filter => service.partition(filter),
  killAfterWrite: filter => service.killAfterWrite(filter),
  delay: filter => service.delay(300, filter),
}
beforeEach(() => call.mockClear())

test.each<[message: RegExp, ...filters: unknown[]]>([
  [/filter of a fault has no methods; it has method, path/, { methods: 'PUT' }],
  [/must be given an object; it has/, /nothing/, new Map([['method', 'PUT']]), new URL('http://a/b'), null, 'PUT', 300],
  [/method must be .*PUT.*, not "put"/, { method: 'put' }],
  [/method must be/, { method: 'PUTS' }, { method: '' }, { method: /PUT/ }, { method: null }],
  [/or an array of them, not \[/, { method: [] }, { method: ['PUT', 'post'] }],
  [/path must be a RegExp, or the whole path/, { path: 5 }, { path: null }, { path: ['/lease/a'] }, { path: '' }],
  [/begins with "\/"/, { path: 'lease' }, { path: 'http://localhost/lease/a' }],
  [/use a RegExp for a pattern/, { path: '/lease/*' }],
  [/matches no request: "\/lease\/q" is what a client sends/, { path: '/lease/q?x=1' }, { path: '/lease/q#x' }],
  [/"\/lease\/%C3%A4%20b" is what/, { path: '/lease/ä b' }, { path: '/a/../lease/ä b' }],
])('a filter that matches no request, or others than it says, is an error: %o', async (message, ...filters) => {
  for (const request of Object.values(FAULTS)) {
    for (const filter of filters) {
      await expect(request(filter as RequestFilter)).rejects.toThrow(
        expect.objectContaining({ name: 'TypeError', message: expect.stringMatching(message) }),
      )
    }
  }
  expect(call).not.toHaveBeenCalled()
})

test.each(['GET', 'HEAD', ['PUT', 'GET']])('no kill follows a read: %j', async method => {
  await expect(service.killAfterWrite({ method })).rejects.toThrow(/that writes \(PUT, POST, PATCH, DELETE\)/)
  expect(call).not.toHaveBeenCalled()
})

test.each<[ms: unknown, type: new () => Error]>([
  ['300', TypeError],
  [undefined, TypeError],
  [{ method: 'PUT' }, TypeError],
  [300n, TypeError],
  [-5, RangeError],
  [Number.NaN, RangeError],
  [Number.POSITIVE_INFINITY, RangeError],
  [2 ** 31, RangeError],
])('no delay of %o', async (ms, type) => {
  await expect(service.delay(ms as number)).rejects.toThrow(type)
  expect(call).not.toHaveBeenCalled()
})

test.each<RequestFilter | undefined>([
  undefined,
  {},
  { method: undefined, path: undefined } as object,
  { method: ['PUT', 'DELETE'], path: '/lease/a%2Fb' },
  { path: '/' },
  { path: /^\/lease\// },
])('a valid filter: %o', async filter => {
  for (const request of Object.values(FAULTS)) await request(filter as RequestFilter)
  expect(call).toHaveBeenCalledTimes(Object.keys(FAULTS).length)
})

test.each<unknown>(['300', 300n, undefined, new Date(), { ms: 5 }])('the clock does not move by %o', async ms => {
  await expect(service.clock.advance(ms as number)).rejects.toThrow(TypeError)
  expect(call).not.toHaveBeenCalled()
})

test('an older Node is named', async () => {
  const versions = vi.spyOn(process, 'versions', 'get').mockReturnValue({ ...process.versions, node: '20.20.2' })
  await expect(startWitness()).rejects.toThrow(/needs Node 24 or later, and this is 20\.20\.2/)
  versions.mockRestore()
})

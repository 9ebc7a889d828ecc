import { describe, expect, test } from 'vitest'
import {
  createSteps,
  DEFAULT_RESERVATION_TTL_MS,
  poolPath,
  startTestService,
  unknownToken,
} from '../support/service.ts'

const { call, database } = await startTestService()
const { reserveName, reserveAndCommit, check } = createSteps(call)
const release = (body?: unknown, query = '') => call('DELETE', `${poolPath}/release${query}`, body)
const isFree = async (subdomain: string) => (await check(subdomain)).available

test('200 with the reservation as it was, without its token', async () => {
  const { reservationToken, ...allocation } = await reserveName('held', { createdBy: 'team a' })
  const { status, body, text } = await release({ subdomain: 'held' })
  expect(status).toBe(200)
  expect(body).toEqual({ freed: allocation })
  expect(text).not.toContain(reservationToken)
  expect(await isFree('held')).toBe(true)
})

test('200 with the active allocation as it was, and its records are withdrawn', async () => {
  const { allocation } = await reserveAndCommit('live')
  const { status, body } = await release({ subdomain: 'live' })
  expect(status).toBe(200)
  expect(body).toEqual({ freed: allocation })
  expect(await isFree('live')).toBe(true)
  expect(await database.sql`select owned from dns_names where subdomain = 'live'`).toEqual([{ owned: [] }])
})

test('a released name can be reserved immediately, with another token', async () => {
  const first = await reserveName('next')
  await release({ subdomain: 'next' })
  expect((await reserveName('next')).reservationToken).not.toBe(first.reservationToken)
})

describe('the name is in the body, or in ?sub= without a usable body', () => {
  test.each<readonly [rule: string, subdomain: string, body: unknown, query: string]>([
    ['no body and ?sub=', 'by-query', undefined, '?sub=by-query'],
    ['an empty body and ?sub=', 'by-empty', '', '?sub=by-empty'],
    ['a body that is not JSON and ?sub=', 'by-broken', 'sub=x', '?sub=by-broken'],
    ['a body without subdomain and ?sub=', 'by-object', {}, '?sub=by-object'],
    ['a body that is not an object and ?sub=', 'by-array', [], '?sub=by-array'],
    ['a body that is null and ?sub=', 'by-null', 'null', '?sub=by-null'],
    ['a body whose subdomain is null and ?sub=', 'by-null-field', { subdomain: null }, '?sub=by-null-field'],
    ['a body whose subdomain is empty and ?sub=', 'by-empty-field', { subdomain: '' }, '?sub=by-empty-field'],
    ['?sub= is trimmed and lower-cased', 'by-case', undefined, '?sub=%20BY-Case%20'],
    ['a body with subdomain, trimmed and lower-cased', 'by-body', { subdomain: ' By-Body ' }, ''],
    ['a body goes before ?sub=', 'by-both', { subdomain: 'by-both' }, '?sub=other'],
    ['unknown fields are ignored', 'by-extra', { subdomain: 'by-extra', force: true }, ''],
  ])('%s', async (_, subdomain, body, query) => {
    await reserveName(subdomain)
    const { status, body: answer } = await release(body, query)
    expect(status).toBe(200)
    expect(answer.freed.subdomain).toBe(subdomain)
  })
})

describe('an optional reservationToken must match', () => {
  test.each<readonly [rule: string, subdomain: string, state: 'reserved' | 'active']>([
    ['of a reservation', 'own-reserved', 'reserved'],
    ['of an active name', 'own-active', 'active'],
  ])('%s: the correct token releases the name, another token changes nothing', async (_, subdomain, state) => {
    const { reservationToken } = await (state === 'active' ? reserveAndCommit(subdomain) : reserveName(subdomain))
    for (const wrong of [unknownToken, 'no uuid', '']) {
      const rejected = await release({ subdomain, reservationToken: wrong })
      expect([rejected.status, rejected.body.error]).toEqual([403, 'token-mismatch'])
    }
    expect((await check(subdomain)).reason).toBe(`${state}-state`)
    expect((await release({ subdomain, reservationToken })).status).toBe(200)
  })

  test('it is also checked with ?sub=', async () => {
    await reserveName('own-query')
    expect((await release({ reservationToken: unknownToken }, '?sub=own-query')).status).toBe(403)
  })

  test('null is equivalent to no token', async () => {
    await reserveName('own-null')
    expect((await release({ subdomain: 'own-null', reservationToken: null })).status).toBe(200)
  })
})

test.each([
  ['for a free name', 'missing', undefined],
  ['for a free name, with any token', 'missing', unknownToken],
])('404 not-found %s', async (_, subdomain, reservationToken) => {
  const { status, body } = await release({ subdomain, ...(reservationToken && { reservationToken }) })
  expect([status, body.error]).toEqual([404, 'not-found'])
})

test('404 not-found for the second release', async () => {
  await reserveAndCommit('twice')
  expect((await release({ subdomain: 'twice' })).status).toBe(200)
  expect((await release({ subdomain: 'twice' })).status).toBe(404)
})

test('404 not-found for an expired reservation, also with its token', async () => {
  const { reservationToken } = await reserveName('late')
  await database.advance(DEFAULT_RESERVATION_TTL_MS)
  expect((await release({ subdomain: 'late' })).status).toBe(404)
  expect((await release({ subdomain: 'late', reservationToken })).status).toBe(404)
})

test('422 unsupported-pool comes before not-found, and after invalid-format', async () => {
  const foreign = '/api/v1/pool/x.test/release'
  expect((await call('DELETE', foreign, { subdomain: 'a' })).body.error).toBe('unsupported-pool')
  expect((await call('DELETE', foreign, { subdomain: '-' })).body.error).toBe('invalid-format')
})

import { expect, test } from 'vitest'
import { EXPIRED_SESSION_COOKIES, parseSessionCookie, toSessionCookies } from './session.ts'

const id = `${'A'.repeat(42)}_`
const other = 'B'.repeat(43)

test.each([
  [undefined, null],
  ['', null],
  ['other=1', null],
  [`pool-session=${id}`, id],
  [`a=b; pool-session=${id}; c=d`, id],
  [`a=b;pool-session=${id}`, id],
  [`__Host-pool-session=${id}`, id],
  [`pool-session=${other}; __Host-pool-session=${id}`, id],
  // The first of two cookies is that of the longer path (RFC 6265 section 5.4), which is never ours.
  [`pool-session=${id}; pool-session=${other}`, id],
  [`pool-session=${id}x`, null],
  ['pool-session=short', null],
  [`pool-session="${id}"`, null],
  [`x-pool-session=${id}`, null],
])('the id in the cookies %j is %j', (header, expected) => {
  expect(parseSessionCookie(header)).toBe(expected)
})

test.each([
  [undefined, `pool-session=${id}; Path=/; HttpOnly; SameSite=Strict`],
  ['http://127.0.0.1:8081', `pool-session=${id}; Path=/; HttpOnly; SameSite=Strict`],
  ['https://console.example', `__Host-pool-session=${id}; Path=/; HttpOnly; SameSite=Strict; Secure`],
])('the cookie for a page of %s', (origin, cookie) => {
  expect(toSessionCookies(id, origin)).toEqual([cookie])
})

test('sign-out removes the cookie under both names', () => {
  expect(EXPIRED_SESSION_COOKIES.map(cookie => cookie.split('=')[0])).toEqual(['__Host-pool-session', 'pool-session'])
  for (const cookie of EXPIRED_SESSION_COOKIES) expect(cookie).toContain('Max-Age=0')
})

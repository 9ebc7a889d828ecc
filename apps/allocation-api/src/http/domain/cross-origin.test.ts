import { describe, expect, test } from 'vitest'
import { isCrossOrigin, isSameOriginWrite } from './cross-origin.ts'

const host = 'pdm.internal:8080'
const allowed = ['https://console.example', 'http://10.0.0.1:3000']
const check = (headers: { site?: string; origin?: string; host?: string }) =>
  isCrossOrigin({ secFetchSite: headers.site, origin: headers.origin, host: headers.host ?? host }, allowed)

describe('passes', () => {
  test.each<readonly [rule: string, headers: { site?: string; origin?: string; host?: string }]>([
    ['a program, without any of the headers', {}],
    ['a navigation from the address bar', { site: 'none' }],
    ['a page of this host', { site: 'same-origin', origin: `http://${host}` }],
    ['a page of this host behind a gate that changes Host', { site: 'same-origin', origin: 'https://public.example' }],
    ['the Origin of an older browser', { origin: `http://${host}` }],
    ['behind a gate that ends TLS', { origin: 'https://pdm.example', host: 'pdm.example' }],
    ['the default port in Host', { origin: 'http://pdm.example', host: 'pdm.example:80' }],
    ['the default port of https in Host', { origin: 'https://pdm.example', host: 'pdm.example:443' }],
    ['the default port in Origin', { origin: 'https://pdm.example:443', host: 'pdm.example' }],
    ['another case', { origin: 'HTTP://PDM.Internal:8080' }],
    ['another case of Host', { origin: 'http://pdm.internal:8080', host: 'PDM.INTERNAL:8080' }],
    ['IPv6', { origin: 'http://[::1]:8080', host: '[::1]:8080' }],
    ['IPv6 in another form', { origin: 'http://[::1]', host: '[0:0:0:0:0:0:0:1]:80' }],
    ['an allowed origin', { origin: 'https://console.example' }],
    ['an allowed origin of another site', { site: 'cross-site', origin: 'https://console.example' }],
    ['an allowed origin of the same site', { site: 'same-site', origin: 'http://10.0.0.1:3000' }],
    ['an allowed origin with its default port', { site: 'cross-site', origin: 'https://console.example:443' }],
    ['an allowed origin in another case', { origin: 'HTTPS://Console.Example' }],
    ['an unknown later value, with the right Origin', { site: 'same-party', origin: `http://${host}` }],
    ['an unknown later value without Origin', { site: 'same-party' }],
  ])('%s', (_, headers) => expect(check(headers)).toBe(false))
})

describe('is rejected', () => {
  test.each<readonly [rule: string, headers: { site?: string; origin?: string; host?: string }]>([
    ['another site', { site: 'cross-site' }],
    ['the same site', { site: 'same-site' }],
    ['another site, whatever the Origin', { site: 'cross-site', origin: `http://${host}` }],
    ['another site, in another case', { site: 'Cross-Site' }],
    ['two values of which one is another site', { site: 'same-origin, cross-site' }],
    ['another host', { origin: 'https://evil.example' }],
    ['the rebound name with another Origin', { origin: 'https://evil.example', host: 'evil2.example' }],
    ['another port', { origin: 'http://pdm.internal:8081' }],
    ['no port, where Host has one', { origin: 'http://pdm.internal' }],
    ['the port of the other scheme', { origin: 'http://pdm.example', host: 'pdm.example:443' }],
    ['a name that begins like the host', { origin: 'http://pdm.internal:8080.evil.example' }],
    ['a name that ends like the host', { origin: 'http://evil-pdm.internal:8080' }],
    ['null', { origin: 'null' }],
    ['an empty Origin', { origin: '' }],
    ['two Origin headers', { origin: `http://${host}, http://${host}` }],
    ['two Origin headers, one of them allowed', { origin: 'https://console.example, https://evil.example' }],
    ['an Origin with a path', { origin: `http://${host}/` }],
    ['an Origin with a user', { origin: `http://evil@${host}` }],
    ['another scheme', { origin: `ftp://${host}` }],
    ['an extension', { origin: 'chrome-extension://abcdefghijklmnop' }],
    ['an allowed origin with another port', { origin: 'https://console.example:8443' }],
    ['an allowed origin with another scheme', { origin: 'http://console.example' }],
    ['a Host with a user', { origin: 'http://evil.example', host: 'a@evil.example' }],
    ['a Host with a path', { origin: 'http://evil.example', host: 'evil.example/x' }],
    ['an empty Host', { origin: 'http://evil.example', host: '' }],
    ['an unknown later value, with another Origin', { site: 'same-party', origin: 'https://evil.example' }],
  ])('%s', (_, headers) => expect(check(headers)).toBe(true))
})

test('a request without Host has no page of its own host', () => {
  expect(isCrossOrigin({ secFetchSite: undefined, origin: 'http://undefined', host: undefined }, [])).toBe(true)
})

describe('a write of a page of this origin', () => {
  test.each<readonly [headers: { site?: string; origin?: string }, isSameOrigin: boolean]>([
    [{ site: 'same-origin' }, true],
    [{ site: 'same-origin', origin: `http://${host}` }, true],
    [{ site: 'same-origin', origin: 'https://public.example' }, true],
    [{ origin: `http://${host}` }, true],
    [{ origin: `https://${host}` }, true],
    [{}, false],
    [{ site: 'none' }, false],
    [{ site: 'same-site', origin: `http://${host}` }, false],
    [{ site: 'cross-site', origin: `http://${host}` }, false],
    [{ site: 'same-origin, cross-site', origin: `http://${host}` }, false],
    [{ site: 'same-party', origin: `http://${host}` }, false],
    [{ origin: 'https://console.example' }, false],
    [{ origin: 'null' }, false],
    [{ origin: '' }, false],
  ])('%j: %s', ({ site, origin }, isSameOrigin) => {
    expect(isSameOriginWrite({ secFetchSite: site, origin, host })).toBe(isSameOrigin)
  })
})

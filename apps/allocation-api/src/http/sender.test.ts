import { describe, expect, test } from 'vitest'
import { type Network, parseNetwork } from '../config/ip-address.ts'
import { createClientAddress, isCrossOrigin, isSameOriginWrite } from './sender.ts'

const toNetworks = (...texts: string[]): Network[] => texts.flatMap(text => parseNetwork(text) ?? [])
const trusted = toNetworks('10.0.0.0/8', '2001:db8:ffff::/48', '192.0.2.200')
const toAddress = createClientAddress(trusted)
const resolve = (peer: string | null, headers: Record<string, string>): string | null =>
  toAddress(peer, name => headers[name])

const viaList = (list: string, peer = '10.0.0.1') => resolve(peer, { 'x-forwarded-for': list })
const viaForwarded = (header: string, peer = '10.0.0.1') => resolve(peer, { forwarded: header })

test('without trusted proxies, the address is that of the connection', () => {
  const plain = createClientAddress([])
  const getHeader = () => '203.0.113.1'
  expect(plain('10.0.0.1', getHeader)).toBe('10.0.0.1')
  expect(plain('::ffff:10.0.0.1', getHeader)).toBe('10.0.0.1')
  expect(plain(null, getHeader)).toBeNull()
})

test.each<readonly [peer: string | null]>([['203.0.113.9'], ['11.0.0.1'], ['2001:db8:fffe::1'], [null]])(
  'a connection from %s is not from a trusted proxy, so the headers have no effect',
  peer => {
    expect(viaList('203.0.113.1', peer as string)).toBe(peer)
    expect(viaForwarded('for=203.0.113.1', peer as string)).toBe(peer)
  },
)

test.each(['10.0.0.1', '::ffff:10.0.0.1', '2001:db8:ffff::1', '2001:0DB8:FFFF:0:0:0:0:1', '192.0.2.200'])(
  'a connection from %s is from a trusted proxy',
  peer => expect(viaList('203.0.113.1', peer)).toBe('203.0.113.1'),
)

describe('X-Forwarded-For', () => {
  test.each<readonly [list: string, address: string, why: string]>([
    ['203.0.113.1', '203.0.113.1', 'one proxy'],
    ['203.0.113.1, 10.1.1.1', '203.0.113.1', 'two trusted proxies'],
    ['203.0.113.1,10.1.1.1 ,\t192.0.2.200', '203.0.113.1', 'white space'],
    ['198.51.100.66, 203.0.113.1', '203.0.113.1', 'the client sent an entry'],
    ['10.9.9.9, 203.0.113.1, 10.1.1.1', '203.0.113.1', 'the client sent the address of a proxy'],
    ['203.0.113.1, 192.0.2.201', '192.0.2.201', 'an unknown proxy counts as the client'],
    ['10.1.1.1', '10.1.1.1', 'the client is in a trusted network'],
    ['10.1.1.1, 10.2.2.2', '10.1.1.1', 'so are all of them'],
    ['203.0.113.1:4711', '203.0.113.1', 'a port'],
    ['[2001:db8::1]:4711', '2001:db8::1', 'a port of IPv6'],
    ['[2001:db8::1]', '2001:db8::1', 'brackets'],
    ['2001:DB8:0:0::1', '2001:db8::1', 'another spelling'],
    ['::ffff:203.0.113.1', '203.0.113.1', 'an IPv4-mapped address'],
    ['198.51.100.66, 2001:db8:ffff::9', '198.51.100.66', 'a trusted IPv6 proxy'],
    ['198.51.100.66, unknown', '10.0.0.1', 'unknown'],
    ['198.51.100.66, unknown, 10.1.1.1', '10.1.1.1', 'unknown, before a known proxy'],
    ['198.51.100.66, <script>', '10.0.0.1', 'garbage'],
    ['198.51.100.66,', '10.0.0.1', 'an empty entry'],
    ['', '10.0.0.1', 'an empty header'],
    ['203.0.113.256', '10.0.0.1', 'not an address'],
    ['203.0.113', '10.0.0.1', 'too short'],
    ['0xcb.0.113.1', '10.0.0.1', 'hexadecimal'],
    ['[203.0.113.1]', '10.0.0.1', 'IPv4 in brackets'],
    ['[2001:db8::1', '10.0.0.1', 'an open bracket'],
    ['fe80::1%eth0', '10.0.0.1', 'a zone, which has a meaning on one machine only'],
    ['203.0.113.1 198.51.100.66', '10.0.0.1', 'no comma'],
    [`${'198.51.100.66, '.repeat(1_000)}203.0.113.1`, '203.0.113.1', 'a long list'],
  ])('%j: %s (%s)', (list, address) => expect(viaList(list)).toBe(address))
})

describe('Forwarded', () => {
  test.each<readonly [header: string, address: string, why: string]>([
    ['for=203.0.113.1', '203.0.113.1', 'one proxy'],
    ['For="203.0.113.1";proto=https;by=10.0.0.1', '203.0.113.1', 'quotes and other parameters'],
    ['proto=http;for=203.0.113.1;host="a,b;c"', '203.0.113.1', 'separators in quotes'],
    ['for=198.51.100.66, for=203.0.113.1 , for=10.1.1.1', '203.0.113.1', 'several proxies'],
    ['for="[2001:db8::1]:4711"', '2001:db8::1', 'IPv6 with a port'],
    ['for="203.0.113.1:_port"', '203.0.113.1', 'an obfuscated port'],
    ['for="203\\.0.113.1"', '203.0.113.1', 'an escaped character'],
    ['for=198.51.100.66, for=_hidden', '10.0.0.1', 'an obfuscated identifier'],
    ['for=198.51.100.66, for=unknown, for=10.1.1.1', '10.1.1.1', 'unknown'],
    ['for=198.51.100.66, proto=https', '10.0.0.1', 'an element without for'],
    ['for=[2001:db8::1]', '10.0.0.1', 'IPv6 without quotes'],
    ['for="198.51.100.66, for=203.0.113.1', '10.0.0.1', 'an open quote of the client'],
    ['for=198.51.100.66;, for=203.0.113.1', '10.0.0.1', 'an empty parameter'],
    ['203.0.113.1', '10.0.0.1', 'no parameter'],
    ['', '10.0.0.1', 'an empty header'],
  ])('%j: %s (%s)', (header, address) => expect(viaForwarded(header)).toBe(address))

  test('a long malformed header is read at once', () => {
    expect(viaForwarded(`for="${'\\'.repeat(16_000)}`)).toBe('10.0.0.1')
    expect(viaForwarded(`${'for=a,'.repeat(3_000)}=`)).toBe('10.0.0.1')
  })
})

describe('both headers', () => {
  const both = (forwarded: string, list: string) => resolve('10.0.0.1', { forwarded, 'x-forwarded-for': list })
  test('that agree', () => expect(both('for="203.0.113.1:80"', '203.0.113.1')).toBe('203.0.113.1'))
  test('that differ: the client may have sent one of them', () => {
    expect(both('for=198.51.100.66', '203.0.113.1')).toBe('10.0.0.1')
    expect(both('for=_hidden', '203.0.113.1')).toBe('10.0.0.1')
  })
})

const host = 'pdm.internal:8080'
const allowed = ['https://console.example', 'http://10.0.0.1:3000']
const check = (headers: { site?: string; origin?: string; host?: string }) =>
  isCrossOrigin({ secFetchSite: headers.site, origin: headers.origin, host: headers.host ?? host }, allowed)

describe('a page passes', () => {
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

describe('a page is rejected', () => {
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

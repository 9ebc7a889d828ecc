import { expect, test } from 'vitest'
import { findScope, parseResponse, parseSettings, toFingerprint } from './api.ts'

test.each<[string, unknown, string]>([
  ['done', { SetDnsResponse: { ResponseCode: 0, Status: 'success' } }, 'success'],
  ['numbers as strings', { SetDnsResponse: { ResponseCode: '0', Status: 'success' } }, 'success'],
  ['a header', { SetDnsResponse: { SetDnsHeader: { SuccessCode: '0', Status: 'success' } } }, 'success'],
  ['a code that contradicts the status', { SetDnsResponse: { ResponseCode: 0, Status: 'error' } }, 'unknown'],
  ['an error', { SetDnsResponse: { ResponseCode: '-1', Status: 'error', Error: 'no such luck' } }, 'unknown'],
  ['busy', { SetDnsResponse: { ResponseCode: 5, Status: 'system_busy' } }, 'busy'],
  ['a key', { Response: { ResponseCode: '-1', Error: 'invalid key' } }, 'wrong-key'],
  [
    'a domain',
    { GetDnsResponse: { ResponseCode: -1, Status: 'error', Error: 'could not find domain in your account' } },
    'no-domain',
  ],
  [
    'a failed connection to the main server',
    { Response: { ResponseCode: '-1', Error: 'problem with connection to main server' } },
    'server',
  ],
  ['an undocumented code', { SetDnsResponse: { ResponseCode: '7', Status: 'error', Error: 'hm' } }, 'server'],
  ['a server in a value', { SetDnsResponse: { ResponseCode: '-1', Error: 'invalid mail server' } }, 'record'],
  ['a domain in a value', { SetDnsResponse: { ResponseCode: '-1', Error: 'invalid domain in record' } }, 'record'],
  ['no code', { GetDnsResponse: { Status: 'success' } }, 'not-understood'],
  ['no envelope', {}, 'not-understood'],
  ['a list', [], 'not-understood'],
  ['not JSON', undefined, 'not-understood'],
])('the result of %s', (_, body, kind) => {
  const result = parseResponse(body)
  expect(result.kind === 'error' ? result.scope : result.kind).toBe(kind)
})

test.each([
  ['rate limit exceeded', 'account'],
  ['Too many requests', 'account'],
  ['you have exceeded your API quota', 'account'],
  ['calls per minute', 'account'],
  ['your account is suspended', 'account'],
  ['permission denied', 'account'],
  ['insufficient balance', 'account'],
  ['system_busy', 'busy'],
  ['invalid key', 'wrong-key'],
  ['could not find domain in your account', 'no-domain'],
  ['problem with connection to main server', 'server'],
  ['Please unlock your domain firstly.', 'zone'],
  ['invalid ip address', 'record'],
  ['only 100 sub records can be set', 'record'],
  ['invalid mx distance', 'record'],
  ['the separate value', 'record'],
  ['no such luck', 'unknown'],
  ['', 'unknown'],
])('an error with the text "%s" is about: %s', (text, scope) => {
  expect(findScope(text)).toBe(scope)
})

const withSettings = (settings: unknown) => ({ GetDns: { NameServerSettings: settings } })

test('settings: absent lists are empty, and numbers may be strings', () => {
  expect(parseSettings(withSettings({ Type: 'Dynadot DNS' }))).toEqual({
    mode: 'Dynadot DNS',
    ttl: undefined,
    records: [],
  })
  const content = withSettings({
    Type: 'Dynadot DNS',
    MainDomains: [{ RecordType: 'MX', Value: 'mail.example', Value2: 10 }],
    SubDomains: [{ Subhost: 'www', RecordType: 'A', Value: '192.0.2.1' }],
    TTL: '300',
  })
  expect(parseSettings(content)).toEqual({
    mode: 'Dynadot DNS',
    ttl: 300,
    records: [
      { place: 'main', host: '', type: 'MX', value: 'mail.example', extra: '10' },
      { place: 'sub', host: 'www', type: 'A', value: '192.0.2.1', extra: '' },
    ],
  })
})

test.each<[string, unknown]>([
  ['no settings', {}],
  ['settings that are null', withSettings(null)],
  ['no mode', withSettings({ TTL: '300' })],
  ['a list that is not an array', withSettings({ Type: 'Dynadot DNS', SubDomains: { Subhost: 'a' } })],
  ['a TTL that is not a number', withSettings({ Type: 'Dynadot DNS', TTL: '5 min' })],
  ['a list of another name', withSettings({ Type: 'Dynadot DNS', Subdomains: [{ Subhost: 'a' }] })],
  ['a record that is not an object', withSettings({ Type: 'Dynadot DNS', MainDomains: ['A'] })],
  ['a record without a type', withSettings({ Type: 'Dynadot DNS', MainDomains: [{ Value: 'x' }] })],
  ['a record without a value', withSettings({ Type: 'Dynadot DNS', MainDomains: [{ RecordType: 'A' }] })],
  ['a record without a host', withSettings({ Type: 'Dynadot DNS', SubDomains: [{ RecordType: 'A', Value: 'x' }] })],
])('%s: not parsed', (_, content) => {
  expect(parseSettings(content as Record<string, unknown>)).toBeUndefined()
})

test('another mode: only the mode is returned', () => {
  const content = withSettings({ Type: 'Name Servers', NameServers: [{ ServerName: 'ns1.example' }], TTL: '300' })
  expect(parseSettings(content)).toEqual({ mode: 'Name Servers', ttl: undefined, records: [] })
})

test('a fingerprint covers all settings and ignores the order of records', () => {
  const [a, b] = ['a', 'b'].map(host => ({ place: 'sub', host, type: 'A', value: '192.0.2.1', extra: '' }) as const)
  if (!a || !b) throw new Error('two records')
  const settings = { mode: 'Dynadot DNS', ttl: 300, records: [a, b] }
  const same = toFingerprint(settings)
  expect(toFingerprint({ ...settings, records: [b, a] })).toBe(same)
  for (const other of [
    { ...settings, mode: 'Parking' },
    { ...settings, ttl: 60 },
    { ...settings, ttl: undefined },
    { ...settings, records: [a] },
    { ...settings, records: [a, b, b] },
    { ...settings, records: [a, { ...b, extra: '1' }] },
  ])
    expect(toFingerprint(other)).not.toBe(same)
})

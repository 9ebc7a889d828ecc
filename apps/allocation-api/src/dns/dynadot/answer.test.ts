import { expect, test } from 'vitest'
import { settingsOf, verdictOf } from './answer.ts'

test.each<[string, unknown, string]>([
  ['done', { SetDnsResponse: { ResponseCode: 0, Status: 'success' } }, 'success'],
  ['numbers as strings', { SetDnsResponse: { ResponseCode: '0', Status: 'success' } }, 'success'],
  ['a header', { SetDnsResponse: { SetDnsHeader: { SuccessCode: '0', Status: 'success' } } }, 'success'],
  ['a code and a status at odds', { SetDnsResponse: { ResponseCode: 0, Status: 'error' } }, 'error'],
  ['an error', { SetDnsResponse: { ResponseCode: '-1', Status: 'error', Error: 'no such luck' } }, 'error'],
  ['busy', { SetDnsResponse: { ResponseCode: 5, Status: 'system_busy' } }, 'busy'],
  ['a key', { Response: { ResponseCode: '-1', Error: 'invalid key' } }, 'wrong-key'],
  [
    'a domain',
    { GetDnsResponse: { ResponseCode: -1, Status: 'error', Error: 'could not find domain in your account' } },
    'no-domain',
  ],
  ['no code', { GetDnsResponse: { Status: 'success' } }, 'not-understood'],
  ['no envelope', {}, 'not-understood'],
  ['a list', [], 'not-understood'],
  ['no JSON', undefined, 'not-understood'],
])('the verdict on %s', (_, body, kind) => {
  expect(verdictOf(body).kind).toBe(kind)
})

const withSettings = (settings: unknown) => ({ GetDns: { NameServerSettings: settings } })

test('settings: lists that are left out are empty, numbers may be strings', () => {
  expect(settingsOf(withSettings({ Type: 'Dynadot DNS' }))).toEqual({
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
  expect(settingsOf(content)).toEqual({
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
  ['settings that are none', withSettings(null)],
  ['no mode', withSettings({ TTL: '300' })],
  ['a list that is none', withSettings({ Type: 'Dynadot DNS', SubDomains: { Subhost: 'a' } })],
  ['a record that is none', withSettings({ Type: 'Dynadot DNS', MainDomains: ['A'] })],
  ['a record without a type', withSettings({ Type: 'Dynadot DNS', MainDomains: [{ Value: 'x' }] })],
  ['a record without a value', withSettings({ Type: 'Dynadot DNS', MainDomains: [{ RecordType: 'A' }] })],
  ['a record without a host', withSettings({ Type: 'Dynadot DNS', SubDomains: [{ RecordType: 'A', Value: 'x' }] })],
])('nothing is made of %s', (_, content) => {
  expect(settingsOf(content as Record<string, unknown>)).toBeUndefined()
})

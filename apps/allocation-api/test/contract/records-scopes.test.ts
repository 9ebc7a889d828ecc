import { describe, expect, test } from 'vitest'
import { startTestService } from '../support/service.ts'
import { challenge, createTenants, recordsEnv } from '../support/tenant-records.ts'

const service = await startTestService(recordsEnv)
const { createTenant, as } = createTenants(service)
await createTenant('other')

/** Where a name is: `template` is at or below the tenant's name, and the service sets its addresses. */
type Place = 'inside' | 'template' | 'outside' | 'invalid'

const places: readonly (readonly [what: string, place: Place, toName: (fqdn: string) => string])[] = [
  ['the name itself', 'template', fqdn => fqdn],
  ['a name below', 'inside', fqdn => `shop.${fqdn}`],
  ['a name far below', 'inside', fqdn => `a.b.c.${fqdn}`],
  ['upper case', 'inside', fqdn => `SHOP.${fqdn.toUpperCase()}`],
  ['a final dot', 'inside', fqdn => `shop.${fqdn}.`],
  ['an A-label', 'inside', fqdn => `xn--bcher-kva.${fqdn}`],
  ['a name below one of the template', 'inside', fqdn => `a.console.${fqdn}`],
  ['a name of the template', 'template', fqdn => `console.${fqdn}`],
  ['the same in another spelling', 'template', fqdn => `Console.${fqdn.toUpperCase()}.`],
  ['a sibling', 'outside', () => 'shop.pool.test'],
  ['another tenant', 'outside', () => 'other.pool.test'],
  ['below another tenant', 'outside', () => 'shop.other.pool.test'],
  ['the pool', 'outside', () => 'pool.test'],
  ['above the pool', 'outside', () => 'test'],
  ['a label that ends in the name', 'outside', fqdn => `x${fqdn}`],
  ['a label with a hyphen before the name', 'outside', fqdn => `x-${fqdn}`],
  ['the name within another domain', 'outside', fqdn => `${fqdn}.evil.`],
  ['the name without a dot', 'outside', fqdn => fqdn.replace('.', '')],
  ['an escaped dot', 'invalid', fqdn => `shop\\.${fqdn}`],
  ['an escape in numbers', 'invalid', fqdn => `shop\\046${fqdn}`],
  ['an empty label', 'invalid', fqdn => `shop..${fqdn}`],
  ['two final dots', 'invalid', fqdn => `shop.${fqdn}..`],
  ['a label of 64 characters', 'invalid', fqdn => `${'a'.repeat(64)}.${fqdn}`],
  ['a name of 255 characters', 'invalid', fqdn => `${'a.'.repeat(Math.ceil((254 - fqdn.length) / 2))}${fqdn}`],
  ['a space', 'invalid', fqdn => `sh op.${fqdn}`],
  ['an IDN as U-labels', 'invalid', fqdn => `b\u00fccher.${fqdn}`],
  ['a letter that Unicode lower-cases to ASCII', 'invalid', fqdn => fqdn.replace('k', '\u212a')],
  ['a control character', 'invalid', fqdn => `a\n.${fqdn}`],
]

const scopes = ['acme', 'records'] as const
type Scope = (typeof scopes)[number]
type Send = ReturnType<typeof as>

const outcome = ({ status, body }: { status: number; body?: { error?: string } }): string =>
  body?.error ?? (status < 300 ? 'accepted' : String(status))
const rejected = (place: Place): readonly string[] =>
  place === 'outside' ? ['outside-scope'] : ['invalid-record', 'outside-scope']
const isRejected = (place: Place): boolean => place === 'outside' || place === 'invalid'

const VALUES: Readonly<Record<string, string>> = {
  A: '192.0.2.1',
  AAAA: '2001:db8::1',
  CNAME: 'x.example',
  TXT: 'x',
  MX: '10 mx.example',
  SRV: '0 5 443 x.example',
  NS: 'ns.example',
}
const ofType =
  (type: string) =>
  (scope: Scope, place: Place): readonly string[] => {
    if (scope === 'acme') return ['outside-scope', ...(place === 'invalid' ? ['invalid-record'] : [])]
    if (isRejected(place)) return rejected(place)
    if (type === 'NS') return ['type-not-allowed']
    return [place === 'template' && ['A', 'AAAA', 'CNAME'].includes(type) ? 'template-record' : 'accepted']
  }
const ofChallenge = (_: Scope, place: Place): readonly string[] => (isRejected(place) ? rejected(place) : ['accepted'])
const toEndpoint = (dnsName: string, type: string) => ({ dnsName, recordType: type, targets: [VALUES[type]] })

/** Each dialect: what it sends for a name, and the outcomes that are right. */
const dialects: readonly (readonly [
  what: string,
  send: (send: Send, name: string) => Promise<string>,
  expected: (scope: Scope, place: Place) => readonly string[],
])[] = [
  ...['A', 'CNAME', 'TXT'].map(
    type =>
      [
        `PUT of ${type}`,
        async (send: Send, name: string) => {
          const answer = await send('PUT', `/${encodeURIComponent(name)}/${type}`, { values: [VALUES[type]] })
          if (answer.status === 200) await send('DELETE', `/${encodeURIComponent(name)}/${type}`)
          return outcome(answer)
        },
        ofType(type),
      ] as const,
  ),
  [
    'httpreq',
    async (send, name) => {
      const body = { fqdn: `_acme-challenge.${name}`, value: challenge('a') }
      const answer = await send('POST', '/httpreq/present', body)
      await send('POST', '/httpreq/cleanup', body)
      return outcome(answer)
    },
    ofChallenge,
  ],
  [
    'acme-dns',
    async (send, name) => outcome(await send('POST', '/acme-dns/update', { subdomain: name, txt: challenge('b') })),
    ofChallenge,
  ],
  // The rules of types are the same in all dialects, and this one writes nothing.
  ...Object.keys(VALUES).map(
    type =>
      [
        `external-dns, adjust of ${type}`,
        async (send: Send, name: string) => {
          const { body, headers } = await send('POST', '/external-dns/adjustendpoints', [toEndpoint(name, type)])
          const [reason] = JSON.parse(headers.get('records-rejected') ?? '[]')
          return body.length === 1 ? 'accepted' : reason.error
        },
        ofType(type),
      ] as const,
  ),
  [
    'external-dns, create and delete',
    async (send, name) => {
      const [created, deleted] = [{ create: [toEndpoint(name, 'A')] }, { delete: [toEndpoint(name, 'A')] }]
      const answer = await send('POST', '/external-dns/records', created)
      if (answer.status === 204) expect((await send('POST', '/external-dns/records', deleted)).status).toBe(204)
      return outcome(answer)
    },
    ofType('A'),
  ],
]

describe.each(places.map((place, at) => [...place, at] as const))('%s', async (_, place, toName, at) => {
  const subdomain = `tenank-${at}`
  const name = toName(`${subdomain}.pool.test`)
  const { mintAs } = await createTenant(subdomain)
  const senders = { acme: as(await mintAs({ scope: 'acme' })), records: as(await mintAs({})) }

  test.each(scopes.flatMap(scope => dialects.map(dialect => [scope, ...dialect] as const)))(
    'scope %s, %s',
    async (scope, _, send, expected) => {
      expect(expected(scope, place)).toContain(await send(senders[scope], name))
    },
  )
})

describe('the name of a challenge', () => {
  const value = challenge('c')
  const rows: readonly (readonly [fqdn: string, expected: string, value?: string])[] = [
    ['_acme-challenge.names.pool.test.', 'accepted'],
    ['_ACME-Challenge.Names.Pool.Test.', 'accepted'],
    ['_acme-challenge.names.pool.test', 'accepted'],
    ['_label._acme-challenge.names.pool.test.', 'accepted'],
    ['x_acme-challenge.names.pool.test.', 'outside-scope'],
    ['label._acme-challenge.names.pool.test.', 'outside-scope'],
    ['_a._b._acme-challenge.names.pool.test.', 'outside-scope'],
    ['_acme-challenge.x_acme-challenge.other.pool.test.', 'outside-scope'],
    ['names.pool.test.', 'outside-scope'],
    ['_acme-challenge.names.pool.test.evil.', 'outside-scope'],
    ['_acme-challenge.pool.test.', 'outside-scope'],
    ['_validation-persist.names.pool.test.', 'outside-scope'],
    ['_acme-challenge.names.pool.test.', 'invalid-record', value.slice(1)],
    ['_acme-challenge.names.pool.test.', 'invalid-record', `${value}a`],
    ['_acme-challenge.names.pool.test.', 'invalid-record', value.replace('c', '+')],
    ['_acme-challenge.names.pool.test.', 'invalid-record', ''],
  ]
  const tenant = createTenant('names', { scope: 'acme' })

  test.each(rows)('%s: %s %s', async (fqdn, expected, text = value) => {
    const { send } = await tenant
    expect(outcome(await send('POST', '/httpreq/present', { fqdn, value: text }))).toBe(expected)
  })
})

import type { Target } from '@pool/contract'
import { describe, expect, test } from 'vitest'
import { type ChangeContext, changeRecords, findTargetConflict, type RecordRules } from './change.ts'
import { describeChanges, toTenantSets } from './describe.ts'
import { dropOldChallenges, findNextExpiry, NO_RECORDS, type StoredRecords } from './stored.ts'
import type { RefusalKind, SetChange } from './types.ts'

const fqdn = 'acme.pool.test'
const template = { names: ['@', '*', 'console'], ttl: 300, challengeTtl: 1 }
const rules: RecordRules = {
  maxScope: 'records',
  types: ['A', 'AAAA', 'CNAME', 'TXT', 'MX', 'SRV', 'CAA', 'NS'],
  limit: 5,
  minTtlSeconds: 60,
  template,
  acceptsLoopback: false,
  pools: ['pool.test', 'eu.acme.pool.test'],
}
const context: ChangeContext = {
  fqdn,
  state: 'active',
  target: { loadBalancerIP: '192.0.2.1' },
  scope: 'records',
  owner: 'a',
  now: 1_000,
}
const host: Target = { loadBalancerHostname: 'lb.example' }
const value = (text: string) => text.padStart(43, 'x')

const at = (name: string) => (name === '' ? fqdn : `${name}.${fqdn}`)
const put = (name: string, type: string, ...values: string[]): SetChange => ({
  kind: 'put',
  name: at(name),
  type,
  values,
})
const remove = (name: string, type: string): SetChange => ({ kind: 'delete', name: at(name), type })
const add = (name: string, text = 'v'): SetChange => ({ kind: 'add-challenge', name: at(name), value: value(text) })
const cleanUp = (name: string, text = 'v'): SetChange => ({
  kind: 'remove-challenge',
  name: at(name),
  value: value(text),
})

const apply = (changes: readonly SetChange[], own: Partial<ChangeContext> = {}, records = NO_RECORDS) =>
  changeRecords(records, changes, { ...context, ...own }, rules)

/** The records after changes that must all be accepted. */
const build = (
  changes: readonly SetChange[],
  own: Partial<ChangeContext> = {},
  records = NO_RECORDS,
): StoredRecords => {
  const result = apply(changes, own, records)
  expect(result.refusals).toEqual([])
  return result.records
}

describe('the scope', () => {
  type Cell = 'ok' | RefusalKind
  const FORMS: readonly (readonly [form: string, name: string, normal: string | null])[] = [
    ['own', fqdn, ''],
    ['below', `shop.${fqdn}`, 'shop'],
    ['deep', `a.b.shop.${fqdn}`, 'a.b.shop'],
    ['template', `console.${fqdn}`, 'console'],
    ['wildcard of the template', `*.${fqdn}`, '*'],
    ['wildcard below', `*.shop.${fqdn}`, '*.shop'],
    ['challenge', `_acme-challenge.${fqdn}`, '_acme-challenge'],
    ['challenge below', `_acme-challenge.shop.${fqdn}`, '_acme-challenge.shop'],
    ['challenge of an account', `_label._acme-challenge.shop.${fqdn}`, '_label._acme-challenge.shop'],
    ['challenge, upper case and final dot', '_ACME-Challenge.Acme.Pool.TEST.', '_acme-challenge'],
    ['below, upper case and final dot', 'SHOP.acme.pool.test.', 'shop'],
    ['A-label', `xn--bcher-kva.${fqdn}`, 'xn--bcher-kva'],
    ['look-alike of a challenge', `x_acme-challenge.${fqdn}`, 'x_acme-challenge'],
    ['another label before it', `x._acme-challenge.${fqdn}`, 'x._acme-challenge'],
    ['sibling', '_acme-challenge.globex.pool.test', null],
    ['sibling with a prefix', '_acme-challenge.xacme.pool.test', null],
    ['parent', '_acme-challenge.pool.test', null],
    ['parent itself', 'pool.test', null],
    ['another zone', '_acme-challenge.acme.pool.test.evil.example', null],
    ['another pool below', '_acme-challenge.eu.acme.pool.test', null],
  ]
  const INVALID: readonly (readonly [form: string, name: string])[] = [
    ['escape', `\\097${fqdn.slice(1)}`],
    ['escaped dot', `x\\.${fqdn}`],
    ['escaped wildcard', `\\052.${fqdn}`],
    ['U-label', `bücher.${fqdn}`],
    ['a letter whose lower case is ASCII', `\u212a.${fqdn}`],
    ['space', `a b.${fqdn}`],
    ['empty label', `a..${fqdn}`],
    ['two final dots', `a.${fqdn}..`],
    ['wildcard in the middle', `a.*.${fqdn}`],
    ['too long', `${'a'.repeat(64)}.${fqdn}`],
    ['too many labels', `${'a.'.repeat(125)}${fqdn}`],
    ['empty', ''],
  ]
  const VALUES: Readonly<Record<string, string>> = {
    A: '192.0.2.9',
    AAAA: '2001:db8::9',
    CNAME: 'other.example',
    TXT: value('t'),
    MX: '10 mx.example',
    SRV: '0 5 443 srv.example',
    CAA: '0 issue "ca.example"',
    NS: 'ns.other.example',
    PTR: 'x.example',
  }

  const expectCell = (scope: 'acme' | 'records', type: string, normal: string | null): Cell => {
    const isChallenge = normal !== null && /^(?:_label\.)?_acme-challenge(?:\.|$)/.test(normal)
    if (normal === null) return 'outside-scope'
    if (isChallenge && type === 'TXT') return 'ok'
    if (scope === 'acme') return 'outside-scope'
    if (type === 'PTR') return 'type-not-allowed'
    if (type === 'NS' && normal.startsWith('*')) return 'invalid-record'
    if (type === 'NS' && isChallenge) return 'delegated'
    const isOfTarget = ['A', 'AAAA', 'CNAME', 'NS'].includes(type)
    if (isOfTarget && ['', '*', 'console'].includes(normal)) return 'template-record'
    if (type === 'CNAME' && normal === '') return 'template-record'
    return 'ok'
  }
  const cells = (['acme', 'records'] as const).flatMap(scope =>
    Object.keys(VALUES).flatMap(type =>
      FORMS.map(([form, name, normal]) => [scope, type, form, name, normal] as const),
    ),
  )

  test.each(cells)('%s: %s, %s', (scope, type, _, name, normal) => {
    const expected = expectCell(scope, type, normal)
    const { refusals, accepted } = apply([{ kind: 'put', name, type, values: [VALUES[type] ?? ''] }], { scope })
    expect(refusals.map(({ kind }) => kind)).toEqual(expected === 'ok' ? [] : [expected])
    if (expected === 'ok') expect(accepted).toMatchObject([{ name: at(normal ?? ''), type }])
    // Removals have the same scope.
    const removed = apply([{ kind: 'delete', name, type }], { scope })
    expect(removed.refusals.map(({ kind }) => kind)).toEqual(expected === 'outside-scope' ? ['outside-scope'] : [])
  })

  test.each(['acme', 'records'] as const)('%s: what is no name', scope => {
    for (const [form, name] of INVALID) {
      for (const change of [
        { kind: 'put', name, type: 'TXT', values: ['t'] },
        { kind: 'delete', name, type: 'TXT' },
        { kind: 'add-challenge', name, value: value('v') },
        { kind: 'remove-challenge', name, value: value('v') },
      ] as const) {
        expect(apply([change], { scope }).refusals, `${form} ${change.kind}`).toMatchObject([
          { kind: 'invalid-record' },
        ])
      }
    }
  })

  test.each(['acme', 'records'] as const)('%s: challenges at other names', scope => {
    for (const [form, name, normal] of FORMS) {
      const isChallenge = normal !== null && /^(?:_label\.)?_acme-challenge(?:\.|$)/.test(normal)
      for (const kind of ['add-challenge', 'remove-challenge'] as const) {
        const { refusals } = apply([{ kind, name, value: value('v') }], { scope })
        const isAllowed = isChallenge || (kind === 'remove-challenge' && scope === 'records' && normal !== null)
        expect(
          refusals.map(refusal => refusal.kind),
          `${form} ${kind}`,
        ).toEqual(isAllowed ? [] : ['outside-scope'])
      }
    }
  })
})

test.each<
  [
    what: string,
    before: readonly SetChange[],
    change: SetChange,
    kind: RefusalKind | null,
    own?: Partial<ChangeContext>,
  ]
>([
  ['a reserved name', [], put('shop', 'A', '192.0.2.9'), 'not-active', { state: 'reserved' }],
  [
    'a delegated name',
    [],
    put('shop', 'A', '192.0.2.9'),
    'delegated',
    { target: { nameservers: ['ns1.example', 'ns2.example'] } },
  ],
  [
    'a deletion below a delegated name',
    [],
    remove('shop', 'A'),
    null,
    { target: { nameservers: ['ns1.example', 'ns2.example'] } },
  ],
  ['CNAME beside data', [put('shop', 'TXT', 't')], put('shop', 'CNAME', 'x.example'), 'record-conflict'],
  ['data beside CNAME', [put('shop', 'CNAME', 'x.example')], put('shop', 'TXT', 't'), 'record-conflict'],
  ['CNAME for CNAME', [put('shop', 'CNAME', 'x.example')], put('shop', 'CNAME', 'y.example'), null],
  [
    'CNAME beside data of another owner',
    [put('shop', 'TXT', 't')],
    put('shop', 'CNAME', 'x.example'),
    'record-conflict',
    { owner: 'b' },
  ],
  [
    'the set of another owner',
    [put('shop', 'A', '192.0.2.9')],
    put('shop', 'A', '192.0.2.8'),
    'record-conflict',
    { owner: 'b' },
  ],
  ['another type beside another owner', [put('shop', 'A', '192.0.2.9')], put('shop', 'TXT', 't'), null, { owner: 'b' }],
  [
    'a deletion of the set of another owner',
    [put('shop', 'A', '192.0.2.9')],
    remove('shop', 'A'),
    'record-conflict',
    { owner: 'b' },
  ],
  ['a deletion of what is absent', [], remove('shop', 'A'), null],
  [
    'an alias at a challenge',
    [add('_acme-challenge')],
    put('_acme-challenge', 'CNAME', 'x.example'),
    'record-conflict',
  ],
  [
    'a challenge at an alias',
    [put('_acme-challenge', 'CNAME', 'x.example')],
    add('_acme-challenge'),
    'record-conflict',
  ],
  ['an alias in place of the empty text', [], put('_acme-challenge', 'CNAME', 'x.example'), null, { target: host }],
  ['data at an alias of the template', [], put('', 'MX', '10 mx.example'), 'record-conflict', { target: host }],
  ['a name below a cut', [put('sub', 'NS', 'ns.example')], put('a.sub', 'A', '192.0.2.9'), 'delegated'],
  ['a challenge below a cut', [put('sub', 'NS', 'ns.example')], add('_acme-challenge.sub'), 'delegated'],
  ['other types at a cut', [put('sub', 'NS', 'ns.example')], put('sub', 'TXT', 't'), 'delegated'],
  ['the cut itself again', [put('sub', 'NS', 'ns.example')], put('sub', 'NS', 'ns2.example'), null],
  ['a cut above records', [put('a.sub', 'A', '192.0.2.9')], put('sub', 'NS', 'ns.example'), 'delegated'],
  ['a cut above a challenge', [add('_acme-challenge.sub')], put('sub', 'NS', 'ns.example'), 'delegated'],
  ['a cut in an alias', [put('sub', 'CNAME', 'x.example')], put('sub', 'NS', 'ns.example'), 'record-conflict'],
  ['an alias to itself', [], put('shop', 'CNAME', at('shop')), 'invalid-record'],
  ['two aliases', [], put('shop', 'CNAME', 'x.example', 'y.example'), 'invalid-record'],
  ['no value', [], put('shop', 'A'), 'invalid-record'],
  ['twenty values', [], put('shop', 'TXT', ...Array.from({ length: 20 }, (_, i) => `${i}`)), null],
  ['more', [], put('shop', 'TXT', ...Array.from({ length: 21 }, (_, i) => `${i}`)), 'invalid-record'],
  ['the longest value', [], put('shop', 'TXT', 'x'.repeat(2_048)), null],
  ['a longer one', [], put('shop', 'TXT', 'x'.repeat(2_049)), 'invalid-record'],
  ['a loopback address', [], put('shop', 'A', '127.0.0.1'), 'invalid-record'],
  ['a link-local address', [], put('shop', 'AAAA', 'fe80::1'), 'invalid-record'],
  [
    'a TTL of more than a day',
    [],
    { kind: 'put', name: at('shop'), type: 'A', ttl: 86_401, values: ['192.0.2.9'] },
    'invalid-record',
  ],
  [
    'a negative TTL',
    [],
    { kind: 'put', name: at('shop'), type: 'A', ttl: -1, values: ['192.0.2.9'] },
    'invalid-record',
  ],
  [
    'a challenge that is too short',
    [],
    { kind: 'add-challenge', name: at('_acme-challenge'), value: 'x' },
    'invalid-record',
  ],
  ['a TXT that is none of a challenge', [], put('_acme-challenge', 'TXT', 'x'), 'invalid-record'],
  [
    'data outside',
    [],
    { kind: 'put', name: 'a-*.other.pool.test', type: 'TXT', values: ['heritage'], isPublished: false },
    null,
  ],
  ['data of another type', [], { ...put('a', 'A', '192.0.2.9'), isPublished: false } as SetChange, 'type-not-allowed'],
  [
    'data of the scope acme',
    [],
    { ...put('a', 'TXT', 't'), isPublished: false } as SetChange,
    'outside-scope',
    { scope: 'acme' },
  ],
  ['a fifth set', [1, 2, 3, 4].map(n => put(`n${n}`, 'TXT', 't')), put('n5', 'TXT', 't'), null],
  ['a sixth set', [1, 2, 3, 4, 5].map(n => put(`n${n}`, 'TXT', 't')), put('n6', 'TXT', 't'), 'too-many-records'],
  [
    'a challenge as the sixth',
    [1, 2, 3, 4, 5].map(n => put(`n${n}`, 'TXT', 't')),
    add('_acme-challenge'),
    'too-many-records',
  ],
  ['a change of one of five', [1, 2, 3, 4, 5].map(n => put(`n${n}`, 'TXT', 't')), put('n5', 'TXT', 'u'), null],
  [
    'too many bytes',
    [1, 2].map(n => put(`n${n}`, 'TXT', ...Array.from({ length: 7 }, (_, i) => `${i}`.repeat(2_000)))),
    put('n3', 'TXT', ...Array.from({ length: 7 }, (_, i) => `${i}`.repeat(2_000))),
    'too-many-records',
  ],
  ['names that are too deep', [], put('a.'.repeat(40).slice(0, -1), 'TXT', 't'), 'too-many-records'],
])('%s', (_, before, change, kind, own = {}) => {
  const { owner, target, ...rest } = own
  const records = build(before, target ? { target } : {})
  const result = apply([change], { ...rest, ...(owner ? { owner } : {}), ...(target ? { target } : {}) }, records)
  expect(result.refusals.map(refusal => refusal.kind)).toEqual(kind === null ? [] : [kind])
  if (kind === null) return
  expect(result).toMatchObject({ records, accepted: [] })
  expect(result.refusals[0]?.change).toBe(change)
  expect(result.refusals[0]?.detail).toMatch(/\.$/)
})

test('removals come first, so an alias can take the place of an address in one request', () => {
  const records = build([put('shop', 'A', '192.0.2.9')])
  const { sets } = build([put('shop', 'CNAME', 'x.example'), remove('shop', 'A')], {}, records)
  expect(sets).toMatchObject([{ name: at('shop'), type: 'CNAME', values: ['x.example.'] }])
})

test('the normal form: TTL, order, final dots and quotes', () => {
  const { accepted, records } = apply([
    { kind: 'put', name: 'Shop.ACME.pool.test.', type: 'mx', ttl: 1, values: ['20  MX2.example.', '10 mx1.example'] },
    put('txt', 'TXT', 'plain', '"quoted"'),
  ])
  expect(accepted).toEqual([
    { kind: 'put', name: at('shop'), type: 'MX', ttl: 60, values: ['10 mx1.example', '20 mx2.example'] },
    { kind: 'put', name: at('txt'), type: 'TXT', ttl: 300, values: ['"plain"', '"quoted"'] },
  ])
  expect(toTenantSets(records, 1).map(({ ttl, values }) => ({ ttl, values }))).toEqual(
    accepted.map(change => (change.kind === 'put' ? { ttl: change.ttl, values: change.values } : null)),
  )
  // What was accepted is accepted again, as it is.
  expect(apply(accepted, {}, records)).toEqual({ records, accepted, refusals: [] })
})

test('data of the tool is returned, and is neither published nor counted as a conflict', () => {
  const data: SetChange = { ...put('shop', 'TXT', 'heritage'), isPublished: false } as SetChange
  const records = build([data, put('shop', 'CNAME', 'x.example')])
  expect(build([put('shop', 'TXT', 't')], { owner: 'b' }, build([data])).sets).toHaveLength(2)
  expect(describeChanges(NO_RECORDS, records)).toBe(`${at('shop')} CNAME set`)
  expect(build([remove('shop', 'TXT')], {}, records).sets).toHaveLength(1)
  const elsewhere = { kind: 'put', name: 'a-acme.pool.test', type: 'TXT', values: ['x'], isPublished: false } as const
  expect(build([{ kind: 'delete', name: elsewhere.name, type: 'TXT' }], {}, build([elsewhere]))).toEqual(NO_RECORDS)
})

test('challenges: each owner has its own values, the newest ten stay, and a repetition restarts the time', () => {
  let records = build([put('_acme-challenge', 'TXT', value('p'), `"${value('q')}"`)])
  records = build([add('_acme-challenge', 'b')], { owner: 'b', now: 2_000 }, records)
  expect(toTenantSets(records, 1)).toMatchObject([
    { owner: 'a', values: { length: 2 } },
    { owner: 'b', values: { length: 1 } },
  ])
  expect(build([put('_acme-challenge', 'TXT', value('r'))], {}, records).challenges.map(own => own.owner)).toEqual([
    'b',
    'a',
  ])
  expect(build([remove('_acme-challenge', 'TXT')], {}, records).challenges).toMatchObject([{ owner: 'b' }])
  // A client cleans up what it presented, whichever of its tokens it used.
  expect(build([cleanUp('_acme-challenge', 'p')], { owner: 'b' }, records).challenges).toHaveLength(2)
  for (let i = 0; i < 9; i += 1) records = build([add('_acme-challenge', `n${i}`)], { now: 3_000 }, records)
  expect(records.challenges.map(own => own.value)).toEqual(
    ['b', ...Array.from({ length: 9 }, (_, i) => `n${i}`)].map(value),
  )
  records = build([add('_acme-challenge', 'b')], { now: 4_000 }, records)
  expect(records.challenges.at(-1)).toEqual({
    name: at('_acme-challenge'),
    value: value('b'),
    owner: 'a',
    setAt: 4_000,
  })
  const week = 7 * 24 * 3_600_000
  expect(findNextExpiry(records)).toBe(3_000 + week)
  expect(dropOldChallenges(records, 3_000 + week).challenges).toMatchObject([{ value: value('b') }])
  expect(findNextExpiry(NO_RECORDS)).toBeNull()
})

test('a host name conflicts with records at the names of the template only', () => {
  const conflict = (changes: readonly SetChange[], target: Target = host) =>
    findTargetConflict(fqdn, target, build(changes), template)
  expect(conflict([put('', 'MX', '10 mx.example')])).toContain(fqdn)
  expect(conflict([put('*', 'TXT', 't')])).toContain(`*.${fqdn}`)
  expect(conflict([put('shop', 'A', '192.0.2.9'), add('_acme-challenge')])).toBeNull()
  expect(conflict([put('', 'MX', '10 mx.example')], { loadBalancerIPv6: '2001:db8::1' })).toBeNull()
  expect(conflict([{ ...put('', 'TXT', 't'), isPublished: false } as SetChange])).toBeNull()
})

test.each([
  ['a name', put('\u00fc'.repeat(80), 'TXT', 't'), /^"\u00fc{60}\u2026" is not the name of a record: use labels of/],
  [
    'a value',
    put('shop', 'MX', '10 ok.example', 'mx.example'),
    /^"mx.example" is not a value of MX records: send a pref/,
  ],
])('the error of %s names it and what to send', (_, change, detail) => {
  expect(apply([change]).refusals[0]?.detail).toMatch(detail)
})

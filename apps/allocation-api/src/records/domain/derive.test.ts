import type { Target } from '@pool/contract'
import { createPrng, type Prng } from '@pool/test-kit/prng.ts'
import { describe, expect, test } from 'vitest'
import { createRecords } from '../../dns/domain/target.ts'
import { resolve } from '../../dns/providers/local/domain/resolve.ts'
import { type ChangeContext, changeRecords, type RecordRules } from './change.ts'
import { deriveRecords, sameRecords } from './derive.ts'
import { NO_RECORDS, type StoredRecords } from './stored.ts'
import type { SetChange } from './types.ts'

const zone = 'pool.test'
const fqdn = 'acme.pool.test'
const template = { names: ['@', '*', 'console'], ttl: 300, challengeTtl: 1 }
const address: Target = { loadBalancerIP: '192.0.2.1' }
const host: Target = { loadBalancerHostname: 'lb.cloud.example' }
const dual: Target = { ...address, loadBalancerIPv6: '2001:db8::1' }

const set = (name: string, type: string, value: string) => ({
  name: name === '' ? fqdn : `${name}.${fqdn}`,
  type,
  ttl: 60,
  values: [value],
  owner: 'a',
  isPublished: true,
})
const challenge = (name: string, value: string, owner = 'a') => ({ name: `${name}.${fqdn}`, value, owner, setAt: 0 })
const stored = (records: Partial<StoredRecords>): StoredRecords => ({ ...NO_RECORDS, ...records })

/** Without those of the target, as `name type values`, relative to the name. */
const deriveTexts = (target: Target, records: StoredRecords): string[] => {
  const texts = (sets: ReturnType<typeof deriveRecords>) =>
    sets.map(
      ({ name, type, values }) =>
        `${name === fqdn ? '@' : name.slice(0, -fqdn.length - 1)} ${type} ${values.join(' ')}`,
    )
  const ofTarget = texts(createRecords(fqdn, target, template))
  return texts(deriveRecords(fqdn, target, records, template)).filter(text => !ofTarget.includes(text))
}

test.each<[what: string, target: Target, records: StoredRecords, expected: readonly string[]]>([
  ['nothing', address, NO_RECORDS, []],
  ['a record below the name', address, stored({ sets: [set('shop', 'A', '192.0.2.9')] }), ['shop A 192.0.2.9']],
  [
    'a deep record: copies of the wildcard at each name between, and at its wildcard',
    dual,
    stored({ sets: [set('a.b', 'A', '192.0.2.9')] }),
    ['a.b A 192.0.2.9', 'b A 192.0.2.1', 'b AAAA 2001:db8::1', '*.b A 192.0.2.1', '*.b AAAA 2001:db8::1'],
  ],
  [
    'a challenge below a name without records',
    address,
    stored({ challenges: [challenge('_acme-challenge.shop', 'v')] }),
    ['_acme-challenge.shop TXT "v"', 'shop A 192.0.2.1', '*.shop A 192.0.2.1'],
  ],
  [
    'records of its own at the name between: no copies',
    address,
    stored({ sets: [set('b', 'TXT', '"t"'), set('a.b', 'A', '192.0.2.9')] }),
    ['b TXT "t"', 'a.b A 192.0.2.9'],
  ],
  [
    'a wildcard of its own below: a copy at the name only',
    address,
    stored({ sets: [set('*.b', 'A', '192.0.2.9')] }),
    ['*.b A 192.0.2.9', 'b A 192.0.2.1'],
  ],
  [
    'the wildcard of the tenant is copied too',
    address,
    stored({ sets: [set('*.b', 'A', '192.0.2.9'), set('x.y.b', 'TXT', '"t"')] }),
    ['*.b A 192.0.2.9', 'x.y.b TXT "t"', 'b A 192.0.2.1', 'y.b A 192.0.2.9', '*.y.b A 192.0.2.9'],
  ],
  [
    'what is not published has no effect',
    address,
    stored({ sets: [{ ...set('a.b', 'TXT', '"t"'), isPublished: false }] }),
    [],
  ],
  [
    'the values of all owners at one challenge',
    address,
    stored({
      challenges: [
        challenge('_acme-challenge', 'v'),
        challenge('_acme-challenge', 'u', 'b'),
        challenge('_acme-challenge', 'v', 'b'),
      ],
    }),
    ['_acme-challenge TXT "u" "v"'],
  ],
  [
    'a challenge beside the empty record of an aliased name',
    host,
    stored({ challenges: [challenge('_acme-challenge', 'v')] }),
    ['_acme-challenge TXT "" "v"'],
  ],
  [
    'an alias at the name of the challenge takes the place of the empty record',
    host,
    stored({ sets: [set('_acme-challenge', 'CNAME', 'acme-dns.example.')] }),
    ['_acme-challenge CNAME acme-dns.example.'],
  ],
  [
    'a wildcard alias of the tenant: an empty record at its challenge',
    address,
    stored({ sets: [set('*.b', 'CNAME', 'x.example.')] }),
    ['*.b CNAME x.example.', '_acme-challenge.b TXT ""', 'b A 192.0.2.1'],
  ],
  [
    'copies of a wildcard alias: an empty record at each challenge',
    host,
    stored({ sets: [set('a.b', 'A', '192.0.2.9')] }),
    ['a.b A 192.0.2.9', 'b CNAME lb.cloud.example.', '*.b CNAME lb.cloud.example.', '_acme-challenge.b TXT ""'],
  ],
  [
    'an account label below an aliased name',
    host,
    stored({ challenges: [challenge('_x._acme-challenge', 'v')] }),
    ['_x._acme-challenge TXT "v"'],
  ],
  [
    'a set that the template has by now is left out',
    address,
    stored({ sets: [set('console', 'A', '192.0.2.9'), set('console', 'MX', '10 mx.example.')] }),
    ['console MX 10 mx.example.'],
  ],
  [
    'a delegated name has nothing else',
    { nameservers: ['ns1.example', 'ns2.example'] },
    stored({ sets: [set('b', 'A', '192.0.2.9')] }),
    [],
  ],
])('%s', (_, target, records, expected) => {
  expect(deriveTexts(target, records)).toEqual(expected)
  const derived = deriveRecords(fqdn, target, records, template)
  expect(sameRecords(derived, deriveRecords(fqdn, target, structuredClone(records), template))).toBe(true)
})

describe('random records of a tenant', () => {
  const labels = ['a', 'b', '*', '_acme-challenge', '_tcp', 'console']
  const randomName = (prng: Prng): string =>
    [
      ...Array.from({ length: prng.below(4) }, (_, i) =>
        prng.pick(i === 0 ? labels : labels.filter(label => label !== '*')),
      ),
      fqdn,
    ].join('.')
  const randomChange = (prng: Prng): SetChange => {
    const name = randomName(prng)
    if (prng.chance(0.2)) return { kind: 'delete', name, type: prng.pick(['A', 'TXT', 'CNAME']) }
    if (prng.chance(0.3)) return { kind: 'add-challenge', name, value: prng.pick('abcdefgh'.split('')).repeat(43) }
    const type = prng.pick(['A', 'TXT', 'CNAME', 'MX', 'NS'])
    const values = { A: '192.0.2.9', TXT: 'text', CNAME: 'other.example', MX: '10 mx.example', NS: 'ns.other.example' }
    return { kind: 'put', name, type, values: [values[type as keyof typeof values]] }
  }
  const rules: RecordRules = {
    maxScope: 'records',
    types: ['A', 'TXT', 'CNAME', 'MX', 'NS'],
    limit: 12,
    minTtlSeconds: 60,
    template,
    acceptsLoopback: false,
    pools: [zone],
  }

  /** What answers for `name` if names without records take nothing out of a wildcard. */
  const findSource = (names: ReadonlySet<string>, name: string): string | null => {
    if (names.has(name)) return name
    for (let above = name; above !== fqdn; ) {
      above = above.slice(above.indexOf('.') + 1)
      if (names.has(`*.${above}`)) return `*.${above}`
      if (names.has(above)) return null
    }
    return null
  }

  test.each(Array.from({ length: 40 }, (_, seed) => seed))(
    'seed %i: every name answers as if no name was empty, and no challenge is an alias',
    seed => {
      const prng = createPrng(`derive ${seed}`)
      const target = prng.pick([address, dual, host])
      const context: ChangeContext = { fqdn, state: 'active', target, scope: 'records', owner: 'a', now: 0 }
      const changes = Array.from({ length: 14 }, () => randomChange(prng))
      const { records } = changeRecords(NO_RECORDS, changes, context, rules)
      const derived = deriveRecords(fqdn, target, records, template)
      const keys = derived.map(({ name, type }) => `${name} ${type}`)
      expect(new Set(keys).size).toBe(keys.length)
      for (const [name, sets] of Map.groupBy(derived, item => item.name)) {
        if (sets.some(({ type }) => type === 'CNAME')) expect(sets, name).toHaveLength(1)
      }
      const own = [
        ...createRecords(fqdn, target, template),
        ...records.sets,
        ...records.challenges.map(({ name, value }) => ({ name, type: 'TXT', ttl: 1, values: [`"${value}"`] })),
      ]
      const aliased = own
        .filter(({ name, type }) => type === 'CNAME' && name.startsWith('*.'))
        .map(({ name }) => `_acme-challenge.${name.slice(2)}`)
      const names = new Set([...own.map(({ name }) => name), ...aliased])
      const cuts = own.filter(({ type }) => type === 'NS').map(({ name }) => name)
      for (const { name, type } of derived) {
        if (type !== 'CNAME' || !name.startsWith('*.')) continue
        const hidden = `_acme-challenge.${name.slice(2)}`
        const isOwn = own.some(item => item.name === hidden && item.type === 'CNAME')
        const { answers } = resolve(zone, { serial: 1, records: derived }, { name: hidden, type: 'CNAME' })
        expect(answers, hidden).toHaveLength(isOwn ? 1 : 0)
      }
      for (let i = 0; i < 60; i += 1) {
        const name = randomName(prng).replaceAll('*', 'w')
        const ask = (type: string) => resolve(zone, { serial: 1, records: derived }, { name, type })
        if (cuts.some(cut => name === cut || name.endsWith(`.${cut}`))) {
          expect(ask('A').isReferral, name).toBe(true)
          continue
        }
        const source = findSource(names, name)
        // The empty texts are in the way of the alias, at the names of challenges and below.
        const isHidden = name.includes('_acme-challenge.') && source?.startsWith('*.')
        if (isHidden && own.some(item => item.name === source && item.type === 'CNAME')) continue
        for (const type of ['A', 'AAAA', 'TXT', 'MX']) {
          const atSource = own.filter(item => item.name === source)
          const wanted = atSource.find(item => item.type === 'CNAME') ?? atSource.find(item => item.type === type)
          const [answer] = ask(type).answers
          // Values of several challenges, and the empty text, are in one set.
          if (type === 'TXT' && answer?.type === 'TXT')
            expect(wanted ?? aliased.includes(source ?? ''), `${name} TXT`).toBeTruthy()
          else expect(answer?.values, `${name} ${type}`).toEqual(wanted?.values)
        }
      }
    },
  )

  test('the order in which records were set does not change what is derived, apart from its order', () => {
    const prng = createPrng('order')
    const context: ChangeContext = { fqdn, state: 'active', target: dual, scope: 'records', owner: 'a', now: 0 }
    const { records } = changeRecords(
      NO_RECORDS,
      Array.from({ length: 14 }, () => randomChange(prng)),
      context,
      rules,
    )
    const sorted = (sets: StoredRecords['sets']) =>
      deriveRecords(fqdn, dual, { ...records, sets }, template)
        .map(item => JSON.stringify(item))
        .sort()
    expect(sorted(records.sets.toReversed())).toEqual(sorted(records.sets))
  })
})

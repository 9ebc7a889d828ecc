import { expect, test } from 'vitest'
import { createDynadotProvider } from '../../src/dns/dynadot.ts'
import type { RecordChange } from '../../src/dns/record-set.ts'
import { until } from '../support/until.ts'
import { describeConformance } from './conformance.ts'
import { startDynadotSubject } from './support/dynadot.ts'
import type { DynadotFault } from './support/dynadot-double.ts'

describeConformance('dynadot', startDynadotSubject)

const patience = () => AbortSignal.timeout(20_000)
const upsert = (name: string, ttl = 300, ...values: string[]): RecordChange => ({
  kind: 'upsert',
  set: { name, type: 'A', ttl, values: values.length > 0 ? values : ['192.0.2.1'] },
})

test('what is not ours goes back as it came, of whatever type and form; so does the TTL', async () => {
  await using subject = await startDynadotSubject()
  const { provider, zone, double } = subject
  const main = [
    { host: '', type: 'MX', value: 'mail2.example', extra: '20' },
    { host: '', type: 'MX', value: 'mail1.example.', extra: '0' },
    { host: '', type: 'EMAIL', value: 'info', extra: 'owner@mail.example' },
    { host: '', type: 'TXT', value: '"one & two" "three=3"', extra: '' },
  ]
  const sub = [
    { host: 'GO', type: 'FORWARD', value: 'https://to.example/?a=b&c=d', extra: '2' },
    { host: 'x', type: 'HTTPS', value: '1 . alpn=h2', extra: 'more' },
    { host: 'x', type: 'TXT', value: 'é + "%41"', extra: '' },
    { host: '*', type: 'A', value: '198.51.100.1', extra: '' },
    { host: '*', type: 'A', value: '198.51.100.1', extra: '' },
  ]
  double.change(zone, { ttl: '86400', main, sub })
  expect(await provider.apply(zone, [upsert(`acme.${zone}`)], patience())).toEqual({ kind: 'applied', refused: [] })
  expect(double.domain(zone)).toEqual({
    mode: 'Dynadot DNS',
    ttl: '86400',
    main,
    sub: [...sub, { host: 'acme', type: 'A', value: '192.0.2.1', extra: '' }],
  })
  await provider.apply(zone, [{ kind: 'delete', name: `acme.${zone}`, type: 'A' }], patience())
  expect(double.domain(zone)).toEqual({ mode: 'Dynadot DNS', ttl: '86400', main, sub })
})

test('a set asked with another TTL than the domain has reads as asked, and once more it is no write', async () => {
  await using subject = await startDynadotSubject()
  const { provider, zone, double } = subject
  await subject.put({ name: `www.${zone}`, type: 'A', ttl: 3_600, values: ['198.51.100.1'] })
  const change = upsert(`acme.${zone}`, 60)
  await provider.apply(zone, [change], patience())
  expect(await provider.read(zone, 'all', patience())).toMatchObject({
    records: [
      { name: `www.${zone}`, ttl: 3_600 },
      { name: `acme.${zone}`, ttl: 60 },
    ],
  })
  expect(double.domain(zone).ttl).toBe('3600')

  double.resetCalls()
  const another = createDynadotProvider({ url: double.url, apiKey: subject.secrets[0] ?? '' })
  expect(await another.read(zone, 'all', patience())).toMatchObject({ records: [{}, { ttl: 3_600 }] })
  expect(await another.apply(zone, [change], patience())).toEqual({ kind: 'applied', refused: [] })
  expect(await another.read(zone, 'all', patience())).toMatchObject({ records: [{}, { ttl: 60 }] })
  expect(double.calls).toMatchObject({ get_dns: 3, set_dns2: 0 })

  await subject.remove(`acme.${zone}`, 'A')
  await another.read(zone, 'all', patience())
  await subject.put({ name: `acme.${zone}`, type: 'A', ttl: 3_600, values: ['198.51.100.1'] })
  expect(await another.read(zone, 'all', patience())).toMatchObject({ records: [{}, { ttl: 3_600 }] })
})

test('a domain without a TTL gets the one asked for', async () => {
  await using subject = await startDynadotSubject()
  const { provider, zone, double } = subject
  double.change(zone, { ttl: '' })
  await provider.apply(zone, [upsert(`acme.${zone}`, 120)], patience())
  await provider.apply(zone, [upsert(`other.${zone}`, 240)], patience())
  expect(double.domain(zone).ttl).toBe('120')
})

test.each(['Dynadot Parking', 'Name Servers', 'Forwarding'])('a domain in mode %s stays in it', async mode => {
  await using subject = await startDynadotSubject()
  const { provider, zone, double } = subject
  double.change(zone, { mode })
  const reason = expect.stringContaining(`does not serve ${zone}`)
  expect(await provider.read(zone, 'all', patience())).toEqual({ kind: 'unavailable', reason })
  expect(await provider.apply(zone, [upsert(`acme.${zone}`)], patience())).toEqual({ kind: 'unavailable', reason })
  expect(double.domain(zone).mode).toBe(mode)
  expect(double.calls.set_dns2).toBe(0)
})

test('each apply reads anew: what came meanwhile is kept', async () => {
  await using subject = await startDynadotSubject()
  const { provider, zone, double } = subject
  await provider.read(zone, 'all', patience())
  const meanwhile = { name: `late.${zone}`, type: 'TXT', ttl: 3_600, values: ['"new"'] }
  await subject.put(meanwhile)
  await provider.apply(zone, [upsert(`acme.${zone}`)], patience())
  expect(await subject.records()).toContainEqual(meanwhile)
  expect(double.calls).toEqual({ get_dns: 2, set_dns2: 1, busy: 0, other: 0 })
})

test('more than fit: those are refused with the limit and the count, the others are there', async () => {
  await using subject = await startDynadotSubject()
  const { provider, zone, double } = subject
  const changes = Array.from({ length: 1_000 }, (_, i) => upsert(`n${i}.${zone}`))
  const result = await provider.apply(zone, changes, patience())
  expect(result.kind === 'applied' && result.refused).toHaveLength(900)
  expect(result).toMatchObject({
    refused: expect.arrayContaining([{ name: `n999.${zone}`, reason: expect.stringMatching(/100 records.*101/) }]),
  })
  expect(double.domain(zone).sub.map(({ host }) => host)).toEqual(Array.from({ length: 100 }, (_, i) => `n${i}`))
})

test('one request at a time within the process; of two processes one is told that the account is busy', async () => {
  await using subject = await startDynadotSubject({ delayMs: 30 })
  const { provider, zone, double } = subject
  const reads = await Promise.all(Array.from({ length: 5 }, () => provider.read(zone, 'all', patience())))
  expect(reads.map(({ kind }) => kind)).toEqual(Array(5).fill('read'))
  expect(double.calls).toMatchObject({ get_dns: 5, busy: 0 })

  const another = createDynadotProvider({ url: double.url, apiKey: subject.secrets[0] ?? '' })
  const both = await Promise.all([provider.read(zone, 'all', patience()), another.read(zone, 'all', patience())])
  expect(both.map(({ kind }) => kind).sort()).toEqual(['read', 'unavailable'])
  expect(both).toContainEqual({ kind: 'unavailable', reason: expect.stringMatching(/busy/) })
})

test('a call that gives up while it waits ends at once and is never sent', async () => {
  await using subject = await startDynadotSubject()
  const { provider, zone, double } = subject
  double.fail('get_dns', 'no answer, no effect')
  const first = new AbortController()
  const second = new AbortController()
  const hanging = provider.read(zone, 'all', first.signal)
  const waiting = provider.read(zone, 'all', second.signal)
  await until('the first call came', () => double.calls.get_dns === 1)
  second.abort()
  expect(await waiting).toMatchObject({ kind: 'unavailable', reason: expect.stringMatching(/in time/) })
  first.abort()
  expect(await hanging).toMatchObject({ kind: 'unavailable' })
  // The double sees the client leave a moment after it left.
  await until('it answers again', async () => (await provider.read(zone, 'all', patience())).kind === 'read')
  expect(double.calls.get_dns).toBe(2)
})

test.each<[string, DynadotFault, object]>([
  ['500', { status: 500 }, { reason: expect.stringMatching(/HTTP 500/) }],
  ['429', { status: 429, retryAfter: '7' }, { reason: expect.stringMatching(/HTTP 429/), retryAfterMs: 7_000 }],
  ['503', { status: 503, retryAfter: '2' }, { retryAfterMs: 2_000 }],
  ['403', { status: 403 }, { reason: expect.stringMatching(/API key/) }],
  ['busy', 'busy', { reason: expect.stringMatching(/one at a time/) }],
  ['half an answer', 'half text', { reason: expect.stringMatching(/understood/) }],
  ['an error', { error: 'problem with connection to main server' }, { reason: expect.stringMatching(/main server/) }],
])('%s is unavailable, and nothing is written', async (_, fault, expected) => {
  await using subject = await startDynadotSubject()
  const { provider, zone, double } = subject
  double.fail('get_dns', fault)
  expect(await provider.read(zone, 'all', patience())).toMatchObject({ kind: 'unavailable', ...expected })
  double.fail('get_dns', fault)
  expect(await provider.apply(zone, [upsert(`acme.${zone}`)], patience())).toMatchObject({ kind: 'unavailable' })
  expect(double.calls.set_dns2).toBe(0)
  if (fault === 'half text') return
  double.fail('set_dns2', fault)
  expect(await provider.apply(zone, [upsert(`acme.${zone}`)], patience())).toMatchObject({
    kind: 'unavailable',
    ...expected,
  })
  expect(double.domain(zone).sub).toEqual([])
})

test('an error that may quote the request is not passed on', async () => {
  await using subject = await startDynadotSubject()
  const { provider, zone, double } = subject
  const [apiKey = ''] = subject.secrets
  for (const error of ['failed: https://api/', 'failed: a=hidden', `account ${apiKey} is locked`]) {
    double.fail('get_dns', { error })
    expect(await provider.read(zone, 'all', patience())).toEqual({
      kind: 'unavailable',
      reason: `Dynadot refused get_dns for ${zone}: without a reason that can be told`,
    })
  }
})

test('a refused change leaves no TTL behind', async () => {
  await using subject = await startDynadotSubject()
  const { provider, zone, double } = subject
  await subject.put({ name: `acme.${zone}`, type: 'A', ttl: 3_600, values: ['192.0.2.1'] })
  double.change(zone, { ttl: '' })
  const changes = [upsert(`acme.${zone}`, 60, 'nonsense'), upsert(`next.${zone}`, 120)]
  expect(await provider.apply(zone, changes, patience())).toMatchObject({ refused: [{ name: `acme.${zone}` }] })
  expect(double.domain(zone).ttl).toBe('120')
  expect(await provider.read(zone, 'all', patience())).toMatchObject({ records: [{ ttl: 120 }, { ttl: 120 }] })
})

test('half a list of records is not written back', async () => {
  await using subject = await startDynadotSubject()
  const { provider, zone, double } = subject
  double.fail('get_dns', 'half content')
  const result = await provider.apply(zone, [upsert(`acme.${zone}`)], patience())
  expect(result).toEqual({ kind: 'unavailable', reason: expect.stringMatching(/incomplete/) })
  expect(double.calls.set_dns2).toBe(0)
})

test.each([
  ['no answer, no effect', 0, 2],
  ['no answer, with effect', 1, 1],
] as const)('a write with %s: unavailable, and the next one makes it so', async (fault, standing, writes) => {
  await using subject = await startDynadotSubject()
  const { provider, zone, double } = subject
  double.fail('set_dns2', fault)
  const giveUp = new AbortController()
  const applied = provider.apply(zone, [upsert(`acme.${zone}`)], giveUp.signal)
  await until('the order came', () => double.calls.set_dns2 === 1 && double.domain(zone).sub.length === standing)
  giveUp.abort()
  expect(await applied).toMatchObject({ kind: 'unavailable', reason: expect.stringMatching(/in time/) })
  await until('it is done', async () => {
    const again = await provider.apply(zone, [upsert(`acme.${zone}`)], patience())
    return again.kind === 'applied'
  })
  expect(double.domain(zone).sub).toHaveLength(1)
  expect(double.calls.set_dns2).toBe(writes)
})

test('an order that was given up has its turn: until then the account is busy, and nothing newer is overwritten', async () => {
  await using subject = await startDynadotSubject({ delayMs: 100 })
  const { provider, zone, double } = subject
  const giveUp = new AbortController()
  const late = provider.apply(zone, [upsert(`late.${zone}`)], giveUp.signal)
  await until('the order came', () => double.calls.set_dns2 === 1)
  giveUp.abort()
  expect(await late).toMatchObject({ kind: 'unavailable' })
  expect(await provider.read(zone, 'all', patience())).toMatchObject({ reason: expect.stringMatching(/busy/) })
  await until('it is done', async () => {
    const next = await provider.apply(zone, [upsert(`next.${zone}`)], patience())
    return next.kind === 'applied'
  })
  expect(double.domain(zone).sub.map(({ host }) => host)).toEqual(['late', 'next'])
})

test('the double can answer with the state before the last write', async () => {
  await using subject = await startDynadotSubject()
  const { provider, zone, double } = subject
  await provider.apply(zone, [upsert(`acme.${zone}`)], patience())
  double.fail('get_dns', 'stale')
  expect(await provider.read(zone, 'all', patience())).toEqual({ kind: 'read', records: [] })
  expect(await provider.read(zone, 'all', patience())).toMatchObject({ records: [{ name: `acme.${zone}` }] })
})

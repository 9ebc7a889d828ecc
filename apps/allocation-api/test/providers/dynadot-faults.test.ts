import type { DynadotDouble, DynadotFault } from '@pool/test-kit/dns/dynadot-double.ts'
import { until } from '@pool/test-kit/poll.ts'
import { expect, test } from 'vitest'
import { patience, startDynadotSubject, upsert } from './support/dynadot.ts'

const differ = { kind: 'unavailable', scope: 'zone', reason: expect.stringMatching(/two answers .* differ/) }

test('a pass is three calls', async () => {
  await using subject = await startDynadotSubject()
  const { provider, zone, double } = subject
  await provider.read(zone, 'all', patience())
  await provider.apply(zone, [upsert(`acme.${zone}`)], patience())
  expect(double.calls).toEqual({ get_dns: 2, set_dns2: 1, busy: 0, other: 0, stale: 0, effects: 1 })
})

test.each<[string, (double: DynadotDouble, zone: string) => void]>([
  ['a record', (double, zone) => double.change(zone, { sub: [{ host: 'b', type: 'TXT', value: 'new', extra: '' }] })],
  [
    'a value',
    (double, zone) => double.change(zone, { main: [{ host: '', type: 'A', value: '192.0.2.9', extra: '' }] }),
  ],
  ['the TTL', (double, zone) => double.change(zone, { ttl: '60' })],
])('%s changed since the read: nothing is written until a read shows it', async (_, edit) => {
  await using subject = await startDynadotSubject()
  const { provider, zone, double } = subject
  double.change(zone, { main: [{ host: '', type: 'A', value: '192.0.2.8', extra: '' }] })
  await provider.read(zone, 'all', patience())
  edit(double, zone)
  const edited = double.domain(zone)
  expect(await provider.apply(zone, [upsert(`acme.${zone}`)], patience())).toEqual(differ)
  expect(double.domain(zone)).toBe(edited)
  await provider.read(zone, 'all', patience())
  expect(await provider.apply(zone, [upsert(`acme.${zone}`)], patience())).toEqual({ kind: 'applied', rejected: [] })
  const acme = { host: 'acme', type: 'A', value: '192.0.2.1', extra: '' }
  expect(double.domain(zone)).toEqual({ ...edited, sub: [...edited.sub, acme] })
})

test.each([0, 1])('answer %i of the two is out of date: nothing is written on it', async stale => {
  await using subject = await startDynadotSubject()
  const { provider, zone, double } = subject
  await provider.apply(zone, [upsert(`acme.${zone}`)], patience())
  const before = double.domain(zone)
  if (stale === 0) double.fail('get_dns', 'stale')
  await provider.read(zone, 'all', patience())
  if (stale === 1) double.fail('get_dns', 'stale')
  expect(await provider.apply(zone, [upsert(`next.${zone}`)], patience())).toEqual(differ)
  expect(double.domain(zone)).toBe(before)
  expect(double.calls.stale).toBe(1)
})

test('a read is good for one apply; without one, the state of the moment stands alone', async () => {
  await using subject = await startDynadotSubject()
  const { provider, zone, double } = subject
  const theirs = { name: `late.${zone}`, type: 'TXT', ttl: 3_600, values: ['"new"'] }
  await provider.read(zone, 'all', patience())
  await provider.apply(zone, [upsert(`acme.${zone}`)], patience())
  await subject.put(theirs)
  expect(await provider.apply(zone, [upsert(`next.${zone}`)], patience())).toEqual({ kind: 'applied', rejected: [] })
  expect(await subject.records()).toContainEqual(theirs)

  await provider.read(zone, 'all', patience())
  double.fail('get_dns', { status: 500 })
  await provider.read(zone, 'all', patience())
  await subject.remove(theirs.name, theirs.type)
  expect(await provider.apply(zone, [upsert(`last.${zone}`)], patience())).toEqual({ kind: 'applied', rejected: [] })
})

test('the same records in another order are the same', async () => {
  await using subject = await startDynadotSubject()
  const { provider, zone, double } = subject
  const sub = ['a', 'b', 'c'].map(host => ({ host, type: 'A', value: '198.51.100.1', extra: '' }))
  double.change(zone, { sub })
  await provider.read(zone, 'all', patience())
  double.change(zone, { sub: sub.toReversed() })
  expect(await provider.apply(zone, [upsert(`acme.${zone}`)], patience())).toEqual({ kind: 'applied', rejected: [] })
})

test('of two that ask at once one is told that the account is busy, and to come again soon', async () => {
  await using subject = await startDynadotSubject({ delayMs: 30 })
  const { provider, zone } = subject
  const both = await Promise.all([provider.read(zone, 'all', patience()), provider.read(zone, 'all', patience())])
  expect(both.map(({ kind }) => kind).sort()).toEqual(['read', 'unavailable'])
  expect(both).toContainEqual({ kind: 'unavailable', reason: expect.stringMatching(/busy/), retryAfterMs: 1_000 })
})

test.each<[string, DynadotFault, object]>([
  ['500', { status: 500 }, { reason: expect.stringMatching(/HTTP 500/) }],
  ['429', { status: 429, retryAfter: '7' }, { reason: expect.stringMatching(/HTTP 429/), retryAfterMs: 7_000 }],
  ['503', { status: 503, retryAfter: '2' }, { retryAfterMs: 2_000 }],
  ['403', { status: 403 }, { reason: expect.stringMatching(/API key/) }],
  ['busy', 'busy', { reason: expect.stringMatching(/one at a time/), retryAfterMs: 1_000 }],
  ['half an answer', 'half text', { reason: expect.stringMatching(/understood/) }],
  ['trouble', { error: 'problem with connection to main server' }, { reason: expect.stringMatching(/main server/) }],
])('%s is unavailable for all zones, and nothing is written', async (_, fault, expected) => {
  await using subject = await startDynadotSubject()
  const { provider, zone, double } = subject
  double.fail('get_dns', fault)
  const answer = await provider.read(zone, 'all', patience())
  expect(answer).toMatchObject({ kind: 'unavailable', ...expected })
  expect(answer).not.toHaveProperty('scope')
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

test.each<DynadotFault>([
  'no answer, no effect',
  'no answer, with effect',
  'stale',
  'half text',
  'half content',
  'busy',
  { effectAfter: Promise.resolve() },
  { status: 302 },
  { status: 403 },
  { status: 414 },
  { status: 500 },
  { error: 'account KEY is locked' },
  { error: 'no record for CAPITALS' },
  { error: 'lost the connection for KEY' },
  { error: 'failed: https://api/?a=hidden' },
])('no key and no request in what is said of %j', async fault => {
  await using subject = await startDynadotSubject()
  const { provider, zone, double, secrets } = subject
  const [key = ''] = secrets
  const quoting =
    typeof fault === 'object' && 'error' in fault
      ? { error: fault.error.replace('KEY', key).replace('CAPITALS', key.toUpperCase()) }
      : fault
  const hangs =
    (typeof fault === 'string' && fault.startsWith('no')) || (typeof fault === 'object' && 'effectAfter' in fault)
  const signal = () => (hangs ? AbortSignal.timeout(200) : patience())
  const said: unknown[] = []
  double.fail('get_dns', quoting)
  said.push(await provider.read(zone, 'all', signal()))
  await until('it answers again', async () => (await provider.read(zone, 'all', patience())).kind === 'read')
  double.fail('set_dns2', quoting)
  said.push(await provider.apply(zone, [upsert(`acme.${zone}`)], signal()))
  const text = JSON.stringify(said).toLowerCase()
  expect(text).not.toContain(key.toLowerCase())
  expect(text).not.toContain('hidden')
})

test('an error without a text says so', async () => {
  await using subject = await startDynadotSubject()
  const { provider, zone, double } = subject
  double.fail('set_dns2', { error: '' })
  expect(await provider.apply(zone, [upsert(`acme.${zone}`)], patience())).toEqual({
    kind: 'applied',
    rejected: [{ name: `acme.${zone}`, reason: 'Dynadot gave no reason that can be told' }],
  })
})

test('a set that makes too long a URL is the trouble of that zone', async () => {
  await using subject = await startDynadotSubject()
  const { provider, zone, double } = subject
  double.fail('set_dns2', { status: 414 })
  expect(await provider.apply(zone, [upsert(`acme.${zone}`)], patience())).toEqual({
    kind: 'unavailable',
    scope: 'zone',
    reason: expect.stringMatching(/too long/),
  })
})

test('half a list of records is not written back', async () => {
  await using subject = await startDynadotSubject()
  const { provider, zone, double } = subject
  double.fail('get_dns', 'half content')
  const result = await provider.apply(zone, [upsert(`acme.${zone}`)], patience())
  expect(result).toEqual({ kind: 'unavailable', scope: 'zone', reason: expect.stringMatching(/incomplete/) })
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

test('an order whose effect comes late: the account is busy until then, and nothing newer is overwritten', async () => {
  await using subject = await startDynadotSubject()
  const { provider, zone, double } = subject
  const effect = Promise.withResolvers<void>()
  double.fail('set_dns2', { effectAfter: effect.promise })
  const giveUp = new AbortController()
  const late = provider.apply(zone, [upsert(`late.${zone}`)], giveUp.signal)
  await until('the order came', () => double.calls.set_dns2 === 1)
  giveUp.abort()
  expect(await late).toMatchObject({ kind: 'unavailable' })
  expect(await provider.read(zone, 'all', patience())).toMatchObject({ retryAfterMs: 1_000 })
  expect(double.domain(zone).sub).toEqual([])
  effect.resolve()
  await until('it is done', async () => {
    const next = await provider.apply(zone, [upsert(`next.${zone}`)], patience())
    return next.kind === 'applied'
  })
  expect(double.domain(zone).sub.map(({ host }) => host)).toEqual(['late', 'next'])
})

test('the double answers with the state before the last change of any kind, never twice in a row', async () => {
  const faults: (DynadotFault | undefined)[] = ['stale', 'stale', 'stale', undefined, 'stale']
  await using subject = await startDynadotSubject({
    nextFault: command => (command === 'get_dns' ? faults.shift() : undefined),
  })
  const { provider, zone, double } = subject
  const sub = ['a', 'b'].map(host => ({ host, type: 'A', value: '192.0.2.1', extra: '' }))
  double.change(zone, { sub: sub.slice(0, 1) })
  double.change(zone, { sub })
  const counts: number[] = []
  for (let i = 0; i < 5; i += 1) {
    const result = await provider.read(zone, 'all', patience())
    if (result.kind === 'read') counts.push(result.records.length)
  }
  expect(counts).toEqual([1, 2, 1, 2, 1])
  expect(double.calls.stale).toBe(3)
})

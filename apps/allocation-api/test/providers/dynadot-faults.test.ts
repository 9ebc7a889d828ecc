import type { DynadotDouble, DynadotFault } from '@pool/test-kit/dns/dynadot-double.ts'
import { until } from '@pool/test-kit/poll.ts'
import { expect, test } from 'vitest'
import { atOrBelow } from './conformance.ts'
import { signal, startDynadotSubject, upsert } from './support/dynadot.ts'

const differ = { kind: 'unavailable', scope: 'zone', reason: expect.stringMatching(/two responses .* differ/) }

test('a read and an apply make three calls', async () => {
  await using subject = await startDynadotSubject()
  const { provider, zone, double } = subject
  await provider.read(zone, atOrBelow(zone), signal())
  await provider.apply(zone, [upsert(`acme.${zone}`)], signal())
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
  await provider.read(zone, atOrBelow(zone), signal())
  edit(double, zone)
  const edited = double.domain(zone)
  expect(await provider.apply(zone, [upsert(`acme.${zone}`)], signal())).toEqual(differ)
  expect(double.domain(zone)).toBe(edited)
  await provider.read(zone, atOrBelow(zone), signal())
  expect(await provider.apply(zone, [upsert(`acme.${zone}`)], signal())).toEqual({ kind: 'applied', rejected: [] })
  const acme = { host: 'acme', type: 'A', value: '192.0.2.1', extra: '' }
  expect(double.domain(zone)).toEqual({ ...edited, sub: [...edited.sub, acme] })
})

test.each([0, 1])('response %i of the two is out of date: nothing is written', async stale => {
  await using subject = await startDynadotSubject()
  const { provider, zone, double } = subject
  await provider.apply(zone, [upsert(`acme.${zone}`)], signal())
  const before = double.domain(zone)
  if (stale === 0) double.fail('get_dns', 'stale')
  await provider.read(zone, atOrBelow(zone), signal())
  if (stale === 1) double.fail('get_dns', 'stale')
  expect(await provider.apply(zone, [upsert(`next.${zone}`)], signal())).toEqual(differ)
  expect(double.domain(zone)).toBe(before)
  expect(double.calls.stale).toBe(1)
})

test('a read is valid for one apply; without one, the current state decides', async () => {
  await using subject = await startDynadotSubject()
  const { provider, zone, double } = subject
  const theirs = { name: `late.${zone}`, type: 'TXT', ttl: 3_600, values: ['"new"'] }
  await provider.read(zone, atOrBelow(zone), signal())
  await provider.apply(zone, [upsert(`acme.${zone}`)], signal())
  await subject.put(theirs)
  expect(await provider.apply(zone, [upsert(`next.${zone}`)], signal())).toEqual({ kind: 'applied', rejected: [] })
  expect(await subject.records()).toContainEqual(theirs)

  await provider.read(zone, atOrBelow(zone), signal())
  double.fail('get_dns', { status: 500 })
  await provider.read(zone, atOrBelow(zone), signal())
  await subject.remove(theirs.name, theirs.type)
  expect(await provider.apply(zone, [upsert(`last.${zone}`)], signal())).toEqual({ kind: 'applied', rejected: [] })
})

test('the same records in another order are the same', async () => {
  await using subject = await startDynadotSubject()
  const { provider, zone, double } = subject
  const sub = ['a', 'b', 'c'].map(host => ({ host, type: 'A', value: '198.51.100.1', extra: '' }))
  double.change(zone, { sub })
  await provider.read(zone, atOrBelow(zone), signal())
  double.change(zone, { sub: sub.toReversed() })
  expect(await provider.apply(zone, [upsert(`acme.${zone}`)], signal())).toEqual({ kind: 'applied', rejected: [] })
})

test('of two concurrent reads, one is unavailable: the account is busy, retry soon', async () => {
  await using subject = await startDynadotSubject({ delayMs: 500 })
  const { provider, zone } = subject
  const both = await Promise.all([
    provider.read(zone, atOrBelow(zone), signal()),
    provider.read(zone, atOrBelow(zone), signal()),
  ])
  expect(both.map(({ kind }) => kind).sort()).toEqual(['read', 'unavailable'])
  expect(both).toContainEqual({ kind: 'unavailable', reason: expect.stringMatching(/busy/), retryAfterMs: 1_000 })
})

test.each<[string, DynadotFault, object]>([
  ['500', { status: 500 }, { reason: expect.stringMatching(/HTTP 500/) }],
  ['429', { status: 429, retryAfter: '7' }, { reason: expect.stringMatching(/HTTP 429/), retryAfterMs: 7_000 }],
  ['503', { status: 503, retryAfter: '2' }, { retryAfterMs: 2_000 }],
  ['403', { status: 403 }, { reason: expect.stringMatching(/API key/) }],
  ['busy', 'busy', { reason: expect.stringMatching(/one at a time/), retryAfterMs: 1_000 }],
  ['a truncated response', 'truncated body', { reason: expect.stringMatching(/understood/) }],
  [
    'a failure of Dynadot',
    { error: 'problem with connection to main server' },
    { reason: expect.stringMatching(/main server/) },
  ],
])('%s: unavailable for all zones, and nothing is written', async (_, fault, expected) => {
  await using subject = await startDynadotSubject()
  const { provider, zone, double } = subject
  double.fail('get_dns', fault)
  const answer = await provider.read(zone, atOrBelow(zone), signal())
  expect(answer).toMatchObject({ kind: 'unavailable', ...expected })
  expect(answer).not.toHaveProperty('scope')
  double.fail('get_dns', fault)
  expect(await provider.apply(zone, [upsert(`acme.${zone}`)], signal())).toMatchObject({ kind: 'unavailable' })
  expect(double.calls.set_dns2).toBe(0)
  if (fault === 'truncated body') return
  double.fail('set_dns2', fault)
  expect(await provider.apply(zone, [upsert(`acme.${zone}`)], signal())).toMatchObject({
    kind: 'unavailable',
    ...expected,
  })
  expect(double.domain(zone).sub).toEqual([])
})

test.each<DynadotFault>([
  'no response, no effect',
  'no response, with effect',
  'stale',
  'truncated body',
  'missing settings',
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
])('results after %j contain neither the key nor the request', async fault => {
  await using subject = await startDynadotSubject()
  const { provider, zone, double, secrets } = subject
  const [key = ''] = secrets
  const quoting =
    typeof fault === 'object' && 'error' in fault
      ? { error: fault.error.replace('KEY', key).replace('CAPITALS', key.toUpperCase()) }
      : fault
  const hangs =
    (typeof fault === 'string' && fault.startsWith('no')) || (typeof fault === 'object' && 'effectAfter' in fault)
  const shortSignal = () => (hangs ? AbortSignal.timeout(200) : signal())
  const results: unknown[] = []
  double.fail('get_dns', quoting)
  results.push(await provider.read(zone, atOrBelow(zone), shortSignal()))
  await until('it responds again', async () => (await provider.read(zone, atOrBelow(zone), signal())).kind === 'read')
  double.fail('set_dns2', quoting)
  results.push(await provider.apply(zone, [upsert(`acme.${zone}`)], shortSignal()))
  const text = JSON.stringify(results).toLowerCase()
  expect(text).not.toContain(key.toLowerCase())
  expect(text).not.toContain('hidden')
})

test('an error without a text: a general reason', async () => {
  await using subject = await startDynadotSubject()
  const { provider, zone, double } = subject
  double.fail('set_dns2', { error: '' })
  expect(await provider.apply(zone, [upsert(`acme.${zone}`)], signal())).toEqual({
    kind: 'applied',
    rejected: [{ name: `acme.${zone}`, reason: 'Dynadot gave no readable reason' }],
  })
})

test('a set whose URL is too long: only that zone is unavailable', async () => {
  await using subject = await startDynadotSubject()
  const { provider, zone, double } = subject
  double.fail('set_dns2', { status: 414 })
  expect(await provider.apply(zone, [upsert(`acme.${zone}`)], signal())).toEqual({
    kind: 'unavailable',
    scope: 'zone',
    reason: expect.stringMatching(/too long/),
  })
})

test('an incomplete list of records is not written back', async () => {
  await using subject = await startDynadotSubject()
  const { provider, zone, double } = subject
  double.fail('get_dns', 'missing settings')
  const result = await provider.apply(zone, [upsert(`acme.${zone}`)], signal())
  expect(result).toEqual({ kind: 'unavailable', scope: 'zone', reason: expect.stringMatching(/incomplete/) })
  expect(double.calls.set_dns2).toBe(0)
})

test.each([
  ['no response, no effect', 0, 2],
  ['no response, with effect', 1, 1],
] as const)('a write with %s: unavailable, and the next apply completes it', async (fault, standing, writes) => {
  await using subject = await startDynadotSubject()
  const { provider, zone, double } = subject
  double.fail('set_dns2', fault)
  const abort = new AbortController()
  const applied = provider.apply(zone, [upsert(`acme.${zone}`)], abort.signal)
  await until('the write has arrived', () => double.calls.set_dns2 === 1 && double.domain(zone).sub.length === standing)
  abort.abort()
  expect(await applied).toMatchObject({ kind: 'unavailable', reason: expect.stringMatching(/in time/) })
  await until('the next apply succeeds', async () => {
    const again = await provider.apply(zone, [upsert(`acme.${zone}`)], signal())
    return again.kind === 'applied'
  })
  expect(double.domain(zone).sub).toHaveLength(1)
  expect(double.calls.set_dns2).toBe(writes)
})

test('an aborted write still executes: until then the account is busy, and nothing newer is overwritten', async () => {
  await using subject = await startDynadotSubject({ delayMs: 1_000 })
  const { provider, zone, double } = subject
  const abort = new AbortController()
  const late = provider.apply(zone, [upsert(`late.${zone}`)], abort.signal)
  await until('the write has arrived', () => double.calls.set_dns2 === 1)
  abort.abort()
  expect(await late).toMatchObject({ kind: 'unavailable' })
  expect(await provider.read(zone, atOrBelow(zone), signal())).toMatchObject({ reason: expect.stringMatching(/busy/) })
  await until('the next apply succeeds', async () => {
    const next = await provider.apply(zone, [upsert(`next.${zone}`)], signal())
    return next.kind === 'applied'
  })
  expect(double.domain(zone).sub.map(({ host }) => host)).toEqual(['late', 'next'])
})

test('a write with a late effect: the account is busy until then, and nothing newer is overwritten', async () => {
  await using subject = await startDynadotSubject()
  const { provider, zone, double } = subject
  const effect = Promise.withResolvers<void>()
  double.fail('set_dns2', { effectAfter: effect.promise })
  const abort = new AbortController()
  const late = provider.apply(zone, [upsert(`late.${zone}`)], abort.signal)
  await until('the write has arrived', () => double.calls.set_dns2 === 1)
  abort.abort()
  expect(await late).toMatchObject({ kind: 'unavailable' })
  expect(await provider.read(zone, atOrBelow(zone), signal())).toMatchObject({ retryAfterMs: 1_000 })
  expect(double.domain(zone).sub).toEqual([])
  effect.resolve()
  await until('the next apply succeeds', async () => {
    const next = await provider.apply(zone, [upsert(`next.${zone}`)], signal())
    return next.kind === 'applied'
  })
  expect(double.domain(zone).sub.map(({ host }) => host)).toEqual(['late', 'next'])
})

test('the double returns the state before the last change, never twice in a row', async () => {
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
    const result = await provider.read(zone, atOrBelow(zone), signal())
    if (result.kind === 'read') counts.push(result.records.length)
  }
  expect(counts).toEqual([1, 2, 1, 2, 1])
  expect(double.calls.stale).toBe(3)
})

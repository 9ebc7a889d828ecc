import { expect, test } from 'vitest'
import { atOrBelow, describeConformance } from './conformance.ts'
import { signal, startDynadotSubject, upsert } from './support/dynadot.ts'

describeConformance('dynadot', startDynadotSubject)

test('foreign records of any type are written back unmodified, and so is the TTL', async () => {
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
  expect(await provider.apply(zone, [upsert(`acme.${zone}`)], signal())).toEqual({ kind: 'applied', rejected: [] })
  expect(double.domain(zone)).toEqual({
    mode: 'Dynadot DNS',
    ttl: '86400',
    main,
    sub: [...sub, { host: 'acme', type: 'A', value: '192.0.2.1', extra: '' }],
  })
  await provider.apply(zone, [{ kind: 'delete', name: `acme.${zone}`, type: 'A' }], signal())
  expect(double.domain(zone)).toEqual({ mode: 'Dynadot DNS', ttl: '86400', main, sub })
})

test('a domain without a TTL gets the desired one', async () => {
  await using subject = await startDynadotSubject()
  const { provider, zone, double } = subject
  double.change(zone, { ttl: '' })
  await provider.apply(zone, [upsert(`acme.${zone}`, 120)], signal())
  await provider.apply(zone, [upsert(`other.${zone}`, 240)], signal())
  expect(double.domain(zone).ttl).toBe('120')
})

test.each(['Dynadot Parking', 'Name Servers', 'Forwarding'])('a domain in mode %s stays in it', async mode => {
  await using subject = await startDynadotSubject()
  const { provider, zone, double } = subject
  double.change(zone, { mode })
  const unavailable = {
    kind: 'unavailable',
    scope: 'zone',
    reason: expect.stringContaining(`does not serve ${zone}`),
  }
  expect(await provider.read(zone, atOrBelow(zone), signal())).toEqual(unavailable)
  expect(await provider.apply(zone, [upsert(`acme.${zone}`)], signal())).toEqual(unavailable)
  expect(double.domain(zone).mode).toBe(mode)
  expect(double.calls.set_dns2).toBe(0)
})

test('a domain of another account: only that zone is unavailable', async () => {
  await using subject = await startDynadotSubject()
  const unavailable = { kind: 'unavailable', scope: 'zone', reason: expect.stringContaining('other.example') }
  expect(await subject.provider.read('other.example', atOrBelow('other.example'), signal())).toEqual(unavailable)
  expect(await subject.provider.apply('other.example', [upsert('a.other.example')], signal())).toEqual(unavailable)
})

test('the provider declares a concurrency of 1 and one TTL for each zone', async () => {
  await using subject = await startDynadotSubject()
  const { provider, zone, double } = subject
  expect(provider).toMatchObject({ concurrency: 1, hasZoneTtl: true })
  double.change(zone, { ttl: '86400' })
  await provider.apply(zone, [upsert(`acme.${zone}`, 60)], signal())
  expect(await provider.read(zone, atOrBelow(zone), signal())).toMatchObject({ records: [{ ttl: 86_400 }] })
  await provider.apply(zone, [upsert(`acme.${zone}`, 120)], signal())
  expect(double.calls.set_dns2).toBe(1)
})

test('records beyond the limit are rejected with the limit and the count, regardless of the order', async () => {
  await using subject = await startDynadotSubject()
  const { provider, zone, double } = subject
  double.change(zone, { sub: [{ host: 'www', type: 'A', value: '198.51.100.1', extra: '' }] })
  const changes = Array.from({ length: 1_000 }, (_, i) => upsert(`n${String(i).padStart(3, '0')}.${zone}`))
  const result = await provider.apply(zone, changes.toReversed(), signal())
  expect(result.kind === 'applied' && result.rejected).toHaveLength(901)
  expect(result).toMatchObject({
    rejected: expect.arrayContaining([
      { name: `n099.${zone}`, reason: expect.stringMatching(/100 records.*101/), isZoneFull: true },
    ]),
  })
  const hosts = Array.from({ length: 99 }, (_, i) => `n${String(i).padStart(3, '0')}`)
  expect(double.domain(zone).sub.map(({ host }) => host)).toEqual(['www', ...hosts])
  expect(double.calls.set_dns2).toBe(1)
})

/** An address that the double rejects. */
const BAD = '192.0.2.66'
const rejectsBad = {
  validateRecord: ({ value }: { readonly value: string }) =>
    value === BAD ? 'this address is not allowed' : undefined,
}

test('a value that only Dynadot rejects is reported with its reason; all others are stored', async () => {
  await using subject = await startDynadotSubject(rejectsBad)
  const { provider, zone, double } = subject
  const changes = Array.from({ length: 60 }, (_, i) => upsert(`n${i}.${zone}`, 300, i === 23 ? BAD : '192.0.2.1'))
  const rejected = [{ name: `n23.${zone}`, reason: 'this address is not allowed' }]
  const result = await provider.apply(zone, changes, signal())
  expect(result).toEqual({ kind: 'applied', rejected, skipped: expect.any(Array) })
  expect(double.calls.set_dns2).toBe(9)
  const skipped = result.kind === 'applied' ? (result.skipped ?? []) : []
  expect(double.domain(zone).sub).toHaveLength(59 - skipped.length)

  const again = changes.filter(change => change.kind === 'upsert' && skipped.includes(change.set.name))
  expect(await provider.apply(zone, again, signal())).toEqual({ kind: 'applied', rejected: [] })
  expect(double.domain(zone).sub).toHaveLength(59)
})

test('one rejected name beside foreign records: two writes, and the records are unchanged', async () => {
  await using subject = await startDynadotSubject(rejectsBad)
  const { provider, zone, double } = subject
  await subject.put({ name: zone, type: 'MX', ttl: 3_600, values: ['10 mail.example.'] })
  const before = double.domain(zone)
  expect(await provider.apply(zone, [upsert(`acme.${zone}`, 300, BAD)], signal())).toEqual({
    kind: 'applied',
    rejected: [{ name: `acme.${zone}`, reason: 'this address is not allowed' }],
  })
  expect(double.domain(zone)).toEqual(before)
  expect(double.calls.set_dns2).toBe(2)
})

test('Dynadot rejects an existing foreign record: the zone is unavailable, and no name is rejected', async () => {
  await using subject = await startDynadotSubject(rejectsBad)
  const { provider, zone, double } = subject
  double.change(zone, { sub: [{ host: 'foreign', type: 'A', value: BAD, extra: '' }] })
  const before = double.domain(zone)
  const changes = [upsert(`acme.${zone}`), upsert(`next.${zone}`)]
  expect(await provider.apply(zone, changes, signal())).toMatchObject({
    kind: 'unavailable',
    scope: 'zone',
    reason: expect.stringMatching(/rejects the existing records .* this address is not allowed/),
  })
  expect(double.domain(zone)).toBe(before)
})

test('a failure during the bisection rejects no name', async () => {
  await using subject = await startDynadotSubject(rejectsBad)
  const { provider, zone, double } = subject
  double.fail('set_dns2', { error: 'this address is not allowed' })
  double.fail('set_dns2', { error: 'problem with connection to main server' })
  const result = await provider.apply(zone, [upsert(`acme.${zone}`), upsert(`next.${zone}`)], signal())
  expect(result).toEqual({ kind: 'unavailable', reason: expect.stringMatching(/connection to main server/) })
})

test('an MX record without a distance is written back with 0, which set_dns2 requires', async () => {
  await using subject = await startDynadotSubject()
  const { provider, zone, double } = subject
  double.change(zone, { main: [{ host: '', type: 'MX', value: 'mail.example', extra: '' }] })
  expect(await provider.apply(zone, [upsert(`acme.${zone}`)], signal())).toEqual({ kind: 'applied', rejected: [] })
  expect(double.domain(zone).main).toEqual([{ host: '', type: 'MX', value: 'mail.example', extra: '0' }])
})

test('a rejected change does not set the TTL', async () => {
  await using subject = await startDynadotSubject()
  const { provider, zone, double } = subject
  double.change(zone, { ttl: '' })
  const changes = [upsert(`acme.${zone}`, 60, 'nonsense'), upsert(`next.${zone}`, 120)]
  expect(await provider.apply(zone, changes, signal())).toMatchObject({ rejected: [{ name: `acme.${zone}` }] })
  expect(double.domain(zone).ttl).toBe('120')
})

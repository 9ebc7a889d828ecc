import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import type { ApplyResult, ReadResult, WantedRecords, ZoneCheck } from '../../src/dns/domain/result.ts'
import { isAtOrBelow, type RecordChange, type RecordSet, recordKey, toOwnerName } from '../../src/dns/domain/rrset.ts'
import type { DnsProvider } from '../../src/dns/provider.ts'
import { collectWanted } from '../../src/dns/read-zone.ts'
import { indexRecords, planName } from '../../src/reconciler/domain/plan.ts'

/** A provider and a zone that a test may change freely. */
export interface ProviderSubject extends AsyncDisposable {
  readonly provider: DnsProvider
  /** An existing zone that contains only SOA and NS records. Its name is unique to the subject. */
  readonly zone: string
  /** The zone's records, not read through the provider: without SOA and NS of the apex, sorted by name and type. */
  readonly records: () => Promise<RecordSet[]>
  /** Writes a record set as another client, not through the provider. */
  readonly put: (set: RecordSet) => Promise<void>
  /** Removes a record set as another client. */
  readonly remove: (name: string, type: string) => Promise<void>
  /** The server does not respond (connections are refused or reset) until `start`. */
  readonly stop: () => Promise<void>
  readonly start: () => Promise<void>
  /** A provider for the same zone with a wrong key. Undefined: the provider has no key. */
  readonly withWrongKey?: DnsProvider
  /** Record sets that a zone can hold, or write within a test's timeout; undefined: enough for every test. */
  readonly maxRecordSets?: number
  /** The TTL of all records, if the provider has one TTL for each zone. */
  readonly onlyTtl?: number
  /** The keys, which no result, log or error may contain. */
  readonly secrets: readonly string[]
}

export type StartSubject = () => Promise<ProviderSubject>

/** Capabilities that differ between providers. */
interface Traits {
  /** The provider authenticates with a key. */
  readonly hasKey: boolean
  /** The provider serves every zone, so no zone is missing. */
  readonly hasEveryZone: boolean
}

/** Everything at or below each of `branches`; of a zone, everything. */
export const atOrBelow = (...branches: readonly string[]): WantedRecords => ({ names: [], branches })

/** The whole zone, as the parts of `readZone` give it. */
export const readAll = (provider: DnsProvider, zone: string, signal: AbortSignal): Promise<ReadResult> =>
  collectWanted(provider.readZone(zone, signal), atOrBelow(zone))

const TTL = 300

const LARGE_BATCH = 1_000
/** Applies, each without the changes rejected before, after which all faulty changes must be found. */
const MAX_APPLY_CALLS = 10

const signal = (): AbortSignal => AbortSignal.timeout(30_000)
const sorted = (sets: readonly RecordSet[]): RecordSet[] =>
  [...sets].sort((a, b) => (recordKey(a) < recordKey(b) ? -1 : 1))
const upsert = (set: RecordSet): RecordChange => ({ kind: 'upsert', set })
const remove = ({ name, type }: RecordSet): RecordChange => ({ kind: 'delete', name, type })
const set = (name: string, type: string, ...values: string[]): RecordSet => ({ name, type, ttl: TTL, values })

/** Records of other clients in a zone: the provider must not change them. */
const foreign = (zone: string): RecordSet[] => [
  set(zone, 'A', '198.51.100.1', '198.51.100.2'),
  set(zone, 'MX', '10 mail1.example.', '20 mail2.example.'),
  set(zone, 'TXT', '"v=spf1 -all"'),
  set(`www.${zone}`, 'CNAME', 'web.example.'),
  set(`v6.${zone}`, 'AAAA', '2001:db8::1'),
  set(`mail.${zone}`, 'MX', '5 mx.example.'),
  set(`text.${zone}`, 'TXT', '"say \\"yes\\"; or no"'),
  set(`_sip._tcp.${zone}`, 'SRV', '10 60 5060 sip.example.'),
  set(`*.${zone}`, 'A', '198.51.100.3'),
  set(`xacme.${zone}`, 'A', '198.51.100.4'),
]

/**
 * The behaviour of a provider that the reconciler relies on. Each new provider adds a `startSubject` and runs this suite.
 */
export const describeConformance = (
  kind: string,
  start: StartSubject,
  { hasKey, hasEveryZone }: Traits = { hasKey: true, hasEveryZone: false },
): void => {
  describe(`${kind}: a provider`, () => {
    let subject: ProviderSubject
    let zone: string
    beforeAll(async () => {
      subject = await start()
      zone = subject.zone
    })
    afterAll(async () => {
      await subject?.provider.close()
      await subject?.[Symbol.asyncDispose]()
    })
    beforeEach(async () => {
      for (const { name, type } of await subject.records()) await subject.remove(name, type)
    })

    const results: string[] = []
    const collect = <Result extends ReadResult | ApplyResult>(result: Result): Result => {
      results.push(JSON.stringify(result))
      // Clients see it: one sentence or more.
      if (result.kind === 'unavailable') expect(result.reason).toMatch(/^[A-Z].*\.$/s)
      return result
    }
    const read = async (owners: readonly string[] | 'all'): Promise<RecordSet[]> => {
      const result = collect(
        owners === 'all'
          ? await readAll(subject.provider, zone, signal())
          : await subject.provider.read(zone, atOrBelow(...owners), signal()),
      )
      if (result.kind !== 'read') throw new Error(result.reason)
      return sorted(result.records)
    }
    /** Like the reconciler: reads before each apply, and applies skipped changes again. */
    const apply = async (...changes: RecordChange[]) => {
      const rejected: { name: string; reason: string }[] = []
      let left = changes
      for (let calls = 0; left.length > 0; calls += 1) {
        expect(calls).toBeLessThan(MAX_APPLY_CALLS)
        await read(left.map(toOwnerName))
        const result = collect(await subject.provider.apply(zone, left, signal()))
        if (result.kind !== 'applied') throw new Error(result.reason)
        const skipped = new Set(result.skipped)
        expect(skipped.size).toBeLessThan(left.length)
        expect(result.rejected.filter(({ name }) => skipped.has(name))).toEqual([])
        rejected.push(...result.rejected)
        left = left.filter(change => skipped.has(toOwnerName(change)))
      }
      return rejected
    }
    const withTtl = (record: RecordSet): RecordSet => ({ ...record, ttl: subject.onlyTtl ?? record.ttl })
    const a = (relative: string, ...values: string[]): RecordSet =>
      withTtl(set(relative === '@' ? `acme.${zone}` : `${relative}.acme.${zone}`, 'A', ...values))
    const ours = async (): Promise<RecordSet[]> =>
      sorted((await subject.records()).filter(({ name }) => isAtOrBelow(name, `acme.${zone}`)))

    test('an empty zone reads as one', async () => {
      expect((await read([`acme.${zone}`])).filter(({ name }) => isAtOrBelow(name, `acme.${zone}`))).toEqual([])
      expect((await read('all')).filter(({ type }) => type !== 'SOA' && type !== 'NS')).toEqual([])
    })

    test('upsert creates, replaces and is idempotent; a read returns the stored records', async () => {
      const first = [a('@', '192.0.2.1'), a('*', '192.0.2.1'), a('console', '192.0.2.1')]
      expect(await apply(...first.map(upsert))).toEqual([])
      expect(await ours()).toEqual(sorted(first))
      expect((await read([`acme.${zone}`])).filter(({ name }) => isAtOrBelow(name, `acme.${zone}`))).toEqual(
        sorted(first),
      )
      expect(await apply(...first.map(upsert))).toEqual([])
      expect(await ours()).toEqual(sorted(first))

      const second = [
        a('@', '192.0.2.2'),
        a('*', '192.0.2.2', '192.0.2.3'),
        { ...a('console', '192.0.2.1'), ttl: subject.onlyTtl ?? 600 },
      ]
      expect(await apply(...second.map(upsert))).toEqual([])
      expect(await ours()).toEqual(sorted(second))
    })

    test('delete removes one record set; deleting an absent one succeeds', async () => {
      await apply(upsert(a('@', '192.0.2.1')), upsert(a('api', '192.0.2.1')), upsert(a('*', '192.0.2.1')))
      expect(await apply(remove(a('api', '192.0.2.1')), remove(a('nothing', '192.0.2.1')))).toEqual([])
      expect(await ours()).toEqual(sorted([a('@', '192.0.2.1'), a('*', '192.0.2.1')]))
      expect(await apply(remove(a('api', '192.0.2.1')))).toEqual([])
    })

    test('a read returns every type at and below the owners', async () => {
      const below = [a('@', '192.0.2.1'), a('deep.down', '192.0.2.1'), withTtl(set(`acme.${zone}`, 'TXT', '"theirs"'))]
      for (const record of [...below, ...foreign(zone).map(withTtl)]) await subject.put(record)
      const all = await read([`acme.${zone}`])
      expect(all.filter(({ name }) => isAtOrBelow(name, `acme.${zone}`))).toEqual(sorted(below))
      const everything = (await read('all')).filter(({ type }) => type !== 'SOA' && type !== 'NS')
      expect(everything).toEqual(sorted([...below, ...foreign(zone).map(withTtl)]))
    })

    test('applies leave foreign records unchanged', async () => {
      const theirs = foreign(zone).map(withTtl)
      for (const record of theirs) await subject.put(record)
      const before = await subject.records()
      await apply(...['@', '*', 'api'].map(name => upsert(a(name, '192.0.2.1'))))
      await apply(upsert(a('@', '192.0.2.2')), remove(a('api', '')))
      expect((await subject.records()).filter(({ name }) => !isAtOrBelow(name, `acme.${zone}`))).toEqual(before)
      await apply(remove(a('@', '')), remove(a('*', '')))
      expect(await subject.records()).toEqual(before)
    })

    test('after an apply, the plan is empty', async () => {
      const desired = ['@', '*', 'console'].map(name =>
        set(`${name === '@' ? '' : `${name}.`}acme.${zone}`, 'A', '192.0.2.1'),
      )
      const name = {
        subdomain: 'acme',
        desired,
        owned: desired.map(({ name, type }) => ({ name, type })),
        previous: [],
        hasInFlightWrite: false,
        isPurged: false,
      }
      const hasZoneTtl = subject.provider.hasZoneTtl ?? false
      const plan = async () => {
        const planned = planName(indexRecords(zone, { records: await read([`acme.${zone}`]) }), name, {
          zone,
          hasZoneTtl,
          zones: [zone],
        })
        return planned.kind === 'changes' ? planned.changes : []
      }
      const first = await plan()
      expect(first).toHaveLength(3)
      await apply(...first)
      expect(await plan()).toEqual([])
    })

    test('a purge deletes every type at and below a name, and nothing else', async () => {
      const fqdn = `acme.${zone}`
      const below = [
        ...[
          set(fqdn, 'A', '192.0.2.1'),
          set(fqdn, 'TXT', '"x"'),
          set(fqdn, 'MX', '5 mx.example.'),
          set(`*.${fqdn}`, 'TXT', '"x"'),
        ],
        ...[set(`cut.${fqdn}`, 'NS', `ns.cut.${fqdn}.`), set(`ns.cut.${fqdn}`, 'A', '198.51.100.1')],
        ...[set(`cut.${fqdn}`, 'DS', `1 8 2 ${'12'.repeat(32)}`), set(`*.alias.${fqdn}`, 'CNAME', 'web.example.')],
        ...[
          set(`moved.${fqdn}`, 'DNAME', 'elsewhere.example.'),
          set(`_sip._tcp.${fqdn}`, 'SRV', '10 60 5060 sip.example.'),
        ],
        ...[set(`svc.${fqdn}`, 'HTTPS', '1 web.example. alpn=h2'), set(`raw.${fqdn}`, 'TYPE65280', '\\# 3 123456')],
        ...[set(`place.${fqdn}`, 'LOC', '52 22 23.000 N 4 53 32.000 E -2.00m 0.00m 10000m 10m')],
        ...[set(`_443._tcp.${fqdn}`, 'TLSA', '3 1 1 1234'), set(`ca.${fqdn}`, 'CAA', '0 issue "ca.example"')],
      ].map(withTtl)
      const beside = [...foreign(zone), set(`x\\.acme.${zone}`, 'TXT', '"one label"')].map(withTtl)
      // Not every provider accepts every type.
      for (const record of [...below, ...beside]) await subject.put(record).catch(() => {})
      const before = await subject.records()
      const isBelow = ({ name }: { name: string }) => below.some(record => record.name === name)
      expect(before.filter(isBelow).length).toBeGreaterThanOrEqual(subject.onlyTtl === undefined ? 13 : 6)
      const name = { subdomain: 'acme', desired: [], owned: [], previous: [], hasInFlightWrite: false, isPurged: true }
      const hasZoneTtl = subject.provider.hasZoneTtl ?? false
      const plan = async () =>
        planName(indexRecords(zone, { records: await read([fqdn]) }), name, { zone, hasZoneTtl, zones: [zone] })
      const planned = await plan()
      if (planned.kind !== 'changes') throw new Error(planned.reason)
      expect(planned.deletedRecords.map(recordKey).sort()).toEqual(before.filter(isBelow).map(recordKey).sort())
      expect(await apply(...planned.changes)).toEqual([])
      expect(await subject.records()).toEqual(before.filter(record => !isBelow(record)))
      expect(await plan()).toMatchObject({ changes: [] })
    })

    test('many changes at once', async () => {
      const count = Math.min(LARGE_BATCH, (subject.maxRecordSets ?? LARGE_BATCH) - 10)
      const many = Array.from({ length: count }, (_, i) => a(`n${i}`, `192.0.2.${i % 250}`))
      expect(await apply(...many.map(upsert))).toEqual([])
      expect(await ours()).toEqual(sorted(many))
      expect(await apply(...many.map(remove))).toEqual([])
      expect(await ours()).toEqual([])
    })

    test('faulty changes are rejected by name with a reason; the others are applied', async () => {
      await subject.put(withTtl(set(`www.acme.${zone}`, 'CNAME', 'web.example.')))
      await apply(upsert(a('old', '192.0.2.1')))
      const rejected = await apply(
        upsert(a('@', '192.0.2.1')),
        upsert(a('www', '192.0.2.1')),
        upsert(a('bad', 'not-an-address')),
        upsert(a('*', '192.0.2.1')),
        remove(a('old', '')),
      )
      expect(rejected.map(({ name }) => name).sort()).toEqual([`bad.acme.${zone}`, `www.acme.${zone}`])
      for (const { reason } of rejected) expect(reason).toMatch(/\w{3}/)
      const theirs = withTtl(set(`www.acme.${zone}`, 'CNAME', 'web.example.'))
      expect(await ours()).toEqual(sorted([a('@', '192.0.2.1'), a('*', '192.0.2.1'), theirs]))
    })

    test.each([
      ['among many good ones', 140, 60],
      ['and nothing else', 0, 30],
    ])('many faulty changes %s: a few calls reject each of them and no other', async (_, most, faults) => {
      const count = Math.min(most, (subject.maxRecordSets ?? LARGE_BATCH) - 10)
      const good = Array.from({ length: count }, (_, i) => a(`n${i}`, '192.0.2.1'))
      const faulty = Array.from({ length: faults }, (_, i) =>
        // RFC 1035 section 2.3.4: a label has 63 octets at most.
        i % 2 === 0 ? a(`${'x'.repeat(64)}.f${i}`, '192.0.2.1') : a(`f${i}`, 'not-an-address'),
      )
      const spread = faulty.flatMap((bad, i) => {
        const upTo = (part: number): number => Math.floor((good.length * part) / faults)
        return [bad, ...good.slice(upTo(i), upTo(i + 1))]
      })
      const rejected = new Map((await apply(...spread.map(upsert))).map(({ name, reason }) => [name, reason]))
      expect([...rejected.keys()].sort()).toEqual(faulty.map(({ name }) => name).sort())
      for (const reason of rejected.values()) expect(reason).toMatch(/\w{3}/)
      expect(await ours()).toEqual(sorted(good))
      // In one call, which is faster than one by one before the next test.
      await apply(...good.map(remove))
    })

    const zoneTest = hasEveryZone ? () => {} : test
    zoneTest('a missing zone: unavailable, and the reason names it', async () => {
      const other = `not-${zone}`
      const results = [
        await subject.provider.read(other, atOrBelow(`acme.${other}`), signal()),
        await subject.provider.apply(other, [upsert(set(`acme.${other}`, 'A', '192.0.2.1'))], signal()),
      ]
      for (const result of results.map(collect)) {
        const reason = expect.stringContaining(other)
        expect(result).toMatchObject({ kind: 'unavailable', reason, scope: 'zone' })
      }
    })

    test('an aborted signal ends a call', async () => {
      const over = AbortSignal.abort()
      const results = [
        await subject.provider.read(zone, atOrBelow(`acme.${zone}`), over),
        await subject.provider.apply(zone, [upsert(a('@', '192.0.2.1'))], over),
      ]
      for (const result of results.map(collect)) expect(result.kind).toBe('unavailable')
      expect(await ours()).toEqual([])
    })

    test('no server: unavailable; after its return, calls succeed', async () => {
      await subject.stop()
      const results = [
        await subject.provider.read(zone, atOrBelow(`acme.${zone}`), signal()),
        await subject.provider.apply(zone, [upsert(a('@', '192.0.2.1'))], signal()),
      ]
      await subject.start()
      for (const result of results.map(collect)) {
        expect(result).toMatchObject({ kind: 'unavailable', reason: expect.stringMatching(/\w{3}/) })
      }
      await expect.poll(async () => (await subject.provider.read(zone, atOrBelow(zone), signal())).kind).toBe('read')
      expect(await apply(upsert(a('@', '192.0.2.1')))).toEqual([])
      expect(await ours()).toEqual([a('@', '192.0.2.1')])
    })

    const checkZone = async (provider: DnsProvider | undefined, checked: string): Promise<ZoneCheck | undefined> => {
      const check = await provider?.checkZone(checked, signal())
      results.push(JSON.stringify(check))
      return check
    }
    const unusable = { kind: 'unusable', advice: expect.stringMatching(/DNSPROVIDER_/) }

    const keyTest = hasKey ? test : () => {}
    keyTest(
      'a wrong key: unavailable with a reason that names it, also in the check of the zone; nothing is changed',
      async () => {
        const { withWrongKey } = subject
        if (!withWrongKey) throw new Error('the subject has no provider with a wrong key')
        const results = [
          await withWrongKey.read(zone, atOrBelow(`acme.${zone}`), signal()),
          await withWrongKey.apply(zone, [upsert(a('@', '192.0.2.1'))], signal()),
        ]
        const check = await checkZone(withWrongKey, zone)
        await withWrongKey.close()
        expect(check).toMatchObject({ ...unusable, advice: expect.stringMatching(/_KEY|_TOKEN|TSIG key/) })
        for (const result of results.map(collect)) {
          expect(result).toMatchObject({ kind: 'unavailable', reason: expect.stringMatching(/key|token/i) })
        }
        expect(await ours()).toEqual([])
      },
    )

    test('the check of a zone: it can be used, and nothing changes', async () => {
      await subject.put(set(`acme.${zone}`, 'A', '192.0.2.1'))
      const before = await subject.records()
      // Dynadot has no write without an effect.
      expect((await checkZone(subject.provider, zone))?.kind).toBe(/dynadot/i.test(kind) ? 'readable' : 'writable')
      expect(await subject.records()).toEqual(before)
    })

    describe.skipIf(hasEveryZone)('the check of a zone that cannot be used', () => {
      test('because the server does not have it', async () => {
        expect(await checkZone(subject.provider, `missing.${zone}`)).toMatchObject(unusable)
      })

      test('because the server does not respond', async () => {
        await subject.stop()
        const check = await checkZone(subject.provider, zone).finally(() => subject.start())
        expect(check).toMatchObject(unusable)
      })
    })

    test('no result contains a secret', () => {
      expect(results.length).toBeGreaterThan(0)
      for (const secret of subject.secrets) expect(results.filter(text => text.includes(secret))).toEqual([])
    })
  })
}

import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { connect, createServer, isIPv6, type Socket } from 'node:net'
import { onMessages, startDnsDouble, toTcpMessage } from '@pool/test-kit/dns/dns-double.ts'
import { shouldSkip } from '@pool/test-kit/optional-deps.ts'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { isAtOrBelow, type RecordChange, type RecordSet } from '../../src/dns/domain/rrset.ts'
import type { DnsProvider } from '../../src/dns/provider.ts'
import { createRfc2136Provider, type Rfc2136Options } from '../../src/dns/providers/rfc2136/index.ts'
import { atOrBelow, describeConformance, type ProviderSubject } from './conformance.ts'
import {
  addresses,
  bind,
  type KeyName,
  knot,
  powerdns,
  type Server,
  type ServerKind,
  startServer,
  withSettings,
} from './support/rfc2136.ts'

const startRfc2136Subject = async (kind: ServerKind): Promise<ProviderSubject> => {
  const server = await startServer(kind)
  const options = server.options()
  const wrongSecret = randomBytes(32).toString('base64')
  return {
    provider: createRfc2136Provider(options),
    zone: server.zone,
    records: server.records,
    put: server.put,
    remove: server.remove,
    ...(kind.maxRecordSets === undefined ? {} : { maxRecordSets: kind.maxRecordSets }),
    stop: server.stop,
    start: server.start,
    withWrongKey: createRfc2136Provider({ ...options, tsig: { ...options.tsig, secret: wrongSecret } }),
    secrets: [server.secret, wrongSecret],
    [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
  }
}

interface BreakingProxy extends AsyncDisposable {
  readonly server: { readonly host: string; readonly port: number }
  /** Octets forwarded so upstream, to the server and from it. */
  readonly carried: { sent: number; received: number }
}

/** Forwards to 127.0.0.1:`port` octet by octet, and resets both connections when a direction reaches its limit in octets. */
const startBreakingProxy = async (
  port: number,
  limits: { sent?: number; received?: number },
): Promise<BreakingProxy> => {
  const carried = { sent: 0, received: 0 }
  const sockets = new Set<Socket>()
  const listener = createServer(client => {
    const upstream = connect({ port, host: '127.0.0.1', noDelay: true })
    client.setNoDelay()
    const directions = [
      [client, upstream, 'sent'],
      [upstream, client, 'received'],
    ] as const
    for (const [from, to, direction] of directions) {
      sockets.add(from)
      from.on('error', () => {})
      from.on('close', () => to.destroy())
      from.on('data', (octets: Buffer) => {
        for (const octet of octets) {
          if (carried[direction] === limits[direction]) {
            client.resetAndDestroy()
            upstream.resetAndDestroy()
            return
          }
          carried[direction] += 1
          to.write(Buffer.of(octet))
        }
      })
    }
  })
  listener.listen(0, '127.0.0.1')
  await once(listener, 'listening')
  const address = listener.address()
  return {
    server: { host: '127.0.0.1', port: typeof address === 'object' && address ? address.port : 0 },
    carried,
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy()
      await new Promise(resolve => listener.close(resolve))
    },
  }
}

const signal = (): AbortSignal => AbortSignal.timeout(120_000)

/** What a read shows at and below `name`. */
const readAt = async (provider: DnsProvider, zone: string, name: string): Promise<RecordSet[]> => {
  const result = await provider.read(zone, atOrBelow(name), signal())
  if (result.kind !== 'read') throw new Error(result.reason)
  return result.records.filter(set => isAtOrBelow(set.name, name))
}

const set = (name: string, type: string, ...values: string[]): RecordSet => ({ name, type, ttl: 300, values })
const upsert = (record: RecordSet): RecordChange => ({ kind: 'upsert', set: record })
const remove = (name: string, type: string): RecordChange => ({ kind: 'delete', name, type })

/** The conformance suite and the RFC 2136 tests against one kind of server. */
const describeRfc2136 = (kind: ServerKind) => {
  if (shouldSkip(kind.missingPrograms)) {
    test.skip(kind.missingPrograms ?? '')
    return
  }
  describeConformance(`rfc2136 with ${kind.name}`, () => startRfc2136Subject(kind))

  describe(`rfc2136: against ${kind.name}`, () => {
    let server: Server
    let zone: string
    beforeAll(async () => {
      server = await startServer(kind)
      zone = server.zone
    })
    afterAll(() => server?.[Symbol.asyncDispose]())

    const provider = (key?: KeyName) => createRfc2136Provider(server.options(key))
    const apply = async (...changes: RecordChange[]) => {
      const result = await provider().apply(zone, changes, signal())
      if (result.kind !== 'applied') throw new Error(result.reason)
      return result.rejected
    }
    const under = async (name: string) => (await server.records()).filter(record => record.name.endsWith(name))

    const samples: [type: string, ...values: string[]][] = [
      ['A', '192.0.2.1', '192.0.2.2'],
      ['AAAA', '2001:db8::1', '::ffff:192.0.2.1'],
      ['CNAME', 'target.example.'],
      ['NS', 'ns1.example.', 'ns2.example.'],
      ['PTR', 'host.example.'],
      ['DNAME', 'elsewhere.example.'],
      ['MX', '10 mail1.example.', '20 mail2.example.'],
      ['TXT', '"a \\"quoted\\" one" "and a second; string"', '"back\\\\slash \\200"'],
      ['SRV', '10 60 5060 sip.example.'],
      ['CAA', '0 issue "ca.example; validationmethods=dns-01"'],
      ['NAPTR', '100 10 "S" "SIP+D2U" "" _sip._udp.example.'],
      ['RP', 'someone.example. text.example.'],
      ['AFSDB', '1 afs.example.'],
      ['SSHFP', '4 2 123456789ABCDEF67890123456789ABCDEF67890123456789ABCDEF123456789'],
    ]
    if (kind.acceptsUnknownTypes) samples.push(['TYPE65280', '\\# 3 ABCDEF'])
    test.each(samples)(
      'a %s record set is read as nsupdate wrote it, and written as dig prints it',
      async (type, ...values) => {
        const theirs = set(`theirs.${type.toLowerCase()}.${zone}`, type, ...[...values].sort())
        await server.put(theirs)
        expect(await readAt(provider(), zone, theirs.name)).toEqual([theirs])

        const ours = { ...theirs, name: `ours.${type.toLowerCase()}.${zone}` }
        expect(await apply(upsert(ours))).toEqual([])
        expect(await under(ours.name)).toEqual([
          // dig separates long hexadecimal data with spaces.
          { ...ours, values: type === 'SSHFP' ? [expect.stringMatching(/^4 2 123456789ABC/)] : ours.values },
        ])
      },
    )

    test('a type in the generic form of RFC 3597 is written in the same form', async () => {
      await server.put(set(`raw.${zone}`, 'LOC', '52 22 23.000 N 4 53 32.000 E -2.00m 0.00m 10000m 10m'))
      const [found] = await readAt(provider(), zone, `raw.${zone}`)
      if (!found) throw new Error('not read')
      expect(found.values).toEqual([expect.stringMatching(/^\\# 16 [0-9A-F]{32}$/)])
      expect(await apply(upsert({ ...found, name: `raw2.${zone}` }))).toEqual([])
      const [first, second] = await under(`.${zone}`).then(all => all.filter(({ type }) => type === 'LOC'))
      expect(second?.values).toEqual(first?.values)
    })

    test('a record set that another writer added since the read is not replaced; the other changes are applied', async () => {
      const reader = provider()
      const [theirs, ours] = [set(`b.late.${zone}`, 'A', '198.51.100.9'), set(`a.late.${zone}`, 'A', '192.0.2.1')]
      const changes = [upsert(ours), upsert(set(theirs.name, 'A', '192.0.2.1'))]
      await reader.read(zone, atOrBelow(zone), signal())
      await server.put(theirs)
      expect(await reader.apply(zone, changes, signal())).toEqual({
        kind: 'applied',
        rejected: [{ name: theirs.name, reason: expect.stringContaining('YXRRSET') }],
      })
      expect(await under(`late.${zone}`)).toEqual([ours, theirs])
      // After a read that returned it, the caller decides whether to replace it.
      await reader.read(zone, atOrBelow(zone), signal())
      expect(await reader.apply(zone, changes, signal())).toEqual({ kind: 'applied', rejected: [] })
      expect(await under(`late.${zone}`)).toEqual([ours, { ...theirs, values: ['192.0.2.1'] }])
      await reader.close()
    })

    test('a dot and a space in a label are escaped', async () => {
      // TXT, because BIND accepts an A record only at a host name (its `check-names`).
      const odd = set(`a\\.b\\032c.${zone}`, 'TXT', '"x"')
      expect(await apply(upsert(odd))).toEqual([])
      expect(await under(odd.name)).toEqual([odd])
      expect(await readAt(provider(), zone, odd.name)).toEqual([odd])
      expect(await apply(remove(odd.name, 'TXT'))).toEqual([])
      expect(await under(odd.name)).toEqual([])
    })

    const cases: [string, (options: Rfc2136Options) => Rfc2136Options, RegExp][] = [
      ['key', ({ tsig, ...rest }) => ({ ...rest, tsig: { ...tsig, name: 'unknown.key.test' } }), /unknown.*BADKEY/],
      ['secret', ({ tsig, ...rest }) => ({ ...rest, tsig: { ...tsig, secret: 'b3RoZXI=' } }), /secret.*BADSIG/],
      ['clock, slow', all => ({ ...all, now: () => Date.now() - 3_600_000 }), /3[56]\d\d s ahead.*BADTIME/],
      ['clock, fast', all => ({ ...all, now: () => Date.now() + 3_600_000 }), /3[56]\d\d s behind.*BADTIME/],
    ]
    test.each(cases)('a wrong %s: unavailable, with the cause', async (_, spoil, reason) => {
      const wrong = createRfc2136Provider(spoil(server.options()))
      const change = upsert(set(`wrong.${zone}`, 'A', '192.0.2.1'))
      const expected = kind.hasTsigErrors
        ? { kind: 'unavailable', reason: expect.stringMatching(reason) }
        : {
            kind: 'unavailable',
            reason: expect.stringMatching(/the TSIG key, its secret and the clocks/),
            scope: 'zone',
          }
      for (const result of [
        await wrong.read(zone, atOrBelow(zone), signal()),
        await wrong.apply(zone, [change], signal()),
      ]) {
        expect(result).toEqual(expected)
      }
      expect(await under(`wrong.${zone}`)).toEqual([])
    })

    test('a key that may only read: many changes are unavailable', async () => {
      const many = Array.from({ length: 50 }, (_, i) => upsert(set(`r${i}.reader.${zone}`, 'A', '192.0.2.1')))
      const reader = provider('reader.key.test')
      expect((await reader.read(zone, atOrBelow(zone), signal())).kind).toBe('read')
      expect(await reader.apply(zone, many, signal())).toMatchObject({
        kind: 'unavailable',
        reason: expect.stringMatching(/not allow .*\((REFUSED|BADKEY)\)|rejects every update of it \(REFUSED\)/),
      })
    })

    test('a zone that the server does not have affects only that zone', async () => {
      const other = `not-${zone}`
      const results = [
        await provider().read(other, atOrBelow(other), signal()),
        await provider().apply(other, [upsert(set(other, 'A', '192.0.2.1'))], signal()),
      ]
      for (const result of results) {
        expect(result).toMatchObject({
          kind: 'unavailable',
          scope: 'zone',
          reason: expect.stringContaining('NOTAUTH'),
        })
      }
    })

    test.each([...addresses, ...addresses.filter(isIPv6).map(address => `[${address}]`), 'localhost'])(
      'the server is reachable at %s',
      async host => {
        const there = createRfc2136Provider({ ...server.options(), server: { host, port: server.port } })
        expect((await there.read(zone, atOrBelow(zone), signal())).kind).toBe('read')
      },
    )

    test('neither an apply without effect nor the effect check changes the serial', async () => {
      const serial = async () => {
        const result = await provider().read(zone, atOrBelow(zone), signal())
        const soa = result.kind === 'read' ? result.records.find(({ type }) => type === 'SOA') : undefined
        return Number(soa?.values[0]?.split(' ')[2])
      }
      const before = await serial()
      await apply(remove(`never.${zone}`, 'A'))
      expect(await serial()).toBe(before)
      await apply(upsert(set(`serial.${zone}`, 'A', '192.0.2.1')))
      expect(await serial()).toBe(before + 1)
    })

    const grantTest = kind === bind ? test : () => {}
    grantTest('a key with permission for addresses only: the check reports it', async () => {
      const check = await provider('addresses.key.test').checkZone(zone, signal())
      expect(check).toMatchObject({ kind: 'unusable', reason: expect.stringContaining('REFUSED') })
    })

    const limitedTest = kind.hasLimitedKeys ? test : () => {}
    limitedTest('a key with permission for some names: those are changed, the others are rejected', async () => {
      const names = ['theirs', 'limited', 'a.limited', 'b.limited', 'xlimited', 'c.limited']
      const changes = names.map(name => upsert(set(`${name}.${zone}`, 'A', '192.0.2.1')))
      const result = await provider('limited.key.test').apply(zone, changes, signal())
      if (result.kind !== 'applied') throw new Error(result.reason)
      expect(result.rejected.map(({ name }) => name)).toEqual([`theirs.${zone}`, `xlimited.${zone}`])
      expect(result.rejected[0]?.reason).toMatch(/not allow this key.*(REFUSED|BADKEY)/)
      expect((await under(`limited.${zone}`)).map(({ name }) => name)).toEqual(
        ['a.limited', 'b.limited', 'c.limited', 'limited'].map(name => `${name}.${zone}`),
      )
    })

    test('changes that a server may ignore silently are rejected: an address beside a CNAME, NS at the apex', async () => {
      await server.put(set(`alias.${zone}`, 'CNAME', 'there.example.'))
      const rejected = await apply(
        upsert(set(`alias.${zone}`, 'A', '192.0.2.1')),
        remove(zone, 'NS'),
        upsert(set(`fine.${zone}`, 'A', '192.0.2.1')),
      )
      expect(rejected).toEqual([
        { name: zone, reason: expect.stringContaining('manages the NS') },
        { name: `alias.${zone}`, reason: expect.stringMatching(/CNAME|does not accept such a record/) },
      ])
      expect(await under(`alias.${zone}`)).toEqual([set(`alias.${zone}`, 'CNAME', 'there.example.')])
      expect(await under(`fine.${zone}`)).toHaveLength(1)
    })

    test('a CNAME beside a foreign record is rejected: no change at that name is applied', async () => {
      await server.put(set(`both.${zone}`, 'TXT', '"theirs"'))
      await server.put(set(`both.${zone}`, 'A', '192.0.2.1'))
      const before = await under(`both.${zone}`)
      const rejected = await apply(
        remove(`both.${zone}`, 'A'),
        upsert(set(`both.${zone}`, 'CNAME', 'there.example.')),
        upsert(set(`good.${zone}`, 'CNAME', 'There.Example.')),
      )
      expect(rejected).toEqual([{ name: `both.${zone}`, reason: expect.stringContaining('YXRRSET') }])
      expect(await under(`both.${zone}`)).toEqual(before)
      expect(await under(`good.${zone}`)).toHaveLength(1)
    })

    test.each([true, false])('a CNAME replaces an address and vice versa, deletion first: %s', async first => {
      const name = `swap.${zone}`
      const there = set(name, 'CNAME', 'there.example.')
      const swap = async (gone: string, wanted: RecordSet) => {
        const changes = [remove(name, gone), upsert(wanted)]
        expect(await apply(...(first ? changes : changes.reverse()))).toEqual([])
        expect(await under(name)).toEqual([wanted])
      }
      await swap('CNAME', set(name, 'A', '192.0.2.1'))
      await swap('A', there)
      expect(await apply(upsert({ ...there, values: ['elsewhere.example.'] }))).toEqual([])
      await swap('CNAME', set(name, 'A', '192.0.2.2'))
    })

    test('updates that need several messages, with some that only the server rejects', async () => {
      const long = (i: number) => `n${i}.${'long'.repeat(12)}.many.${zone}`
      const faulty = [0, 700, 701, 2_999]
      for (const i of faulty) await server.put(set(long(i), 'TXT', '"theirs"'))
      const changes = Array.from({ length: 3_000 }, (_, i) =>
        upsert(faulty.includes(i) ? set(long(i), 'CNAME', 'x.example.') : set(long(i), 'A', '192.0.2.1')),
      )
      const tooLarge = upsert(
        set(`large.${zone}`, 'TXT', ...Array.from({ length: 400 }, (_, i) => `"${i}${'x'.repeat(200)}"`)),
      )
      const rejected = await apply(...changes, tooLarge)
      expect(rejected.map(({ name }) => name).sort()).toEqual([...faulty.map(long), `large.${zone}`].sort())
      const there = await under(`.many.${zone}`)
      expect(there.filter(({ type }) => type === 'A')).toHaveLength(3_000 - faulty.length)

      // The transfer of the zone has several messages now.
      expect(await readAt(provider(), zone, `many.${zone}`)).toHaveLength(3_000)
    })

    test('without a valid change, no update is sent', async () => {
      const result = await provider().apply(zone, [upsert(set(`x.${zone}`, 'A', 'rubbish'))], signal())
      expect(result).toMatchObject({ kind: 'applied', rejected: [{ name: `x.${zone}` }] })
    })

    test('an update whose connection breaks at any octet is applied completely or not at all, and never reported as applied', async () => {
      const applyThrough = async (limits: { sent?: number; received?: number }, changes: RecordChange[]) => {
        await using proxy = await startBreakingProxy(server.port, limits)
        const through = createRfc2136Provider({ ...server.options(), server: proxy.server })
        return { result: await through.apply(zone, changes, signal()), carried: proxy.carried }
      }
      const names = ['first', 'second'].map(label => `${label}.cut.${zone}`)
      const gone = names.map(name => remove(name, 'A'))
      const there = names.map(name => upsert(set(name, 'A', '192.0.2.1')))
      const { result, carried } = await applyThrough({}, there)
      expect(result).toEqual({ kind: 'applied', rejected: [] })
      expect(await apply(...gone)).toEqual([])

      for (const direction of ['sent', 'received'] as const) {
        // A prime, so that the connection breaks within lengths, headers, names and signatures.
        for (let octets = 0; octets < carried[direction]; octets += 61) {
          expect(await applyThrough({ [direction]: octets }, there)).toMatchObject({ result: { kind: 'unavailable' } })
          expect([0, 2]).toContain((await under(`.cut.${zone}`)).length)
        }
        expect((await applyThrough({ [direction]: carried[direction] }, there)).result).toEqual({
          kind: 'applied',
          rejected: [],
        })
        expect(await under(`.cut.${zone}`)).toHaveLength(2)
        expect(await apply(...gone)).toEqual([])
      }
    })

    test('a transfer with an octet changed in transit is rejected', async () => {
      await server.put(set(`forged.${zone}`, 'A', '192.0.2.77'))
      await using double = await startDnsDouble((request, socket) => {
        const upstream = connect(server.port, '127.0.0.1', () => upstream.write(toTcpMessage(request)))
        const forge = (octets: Buffer) => {
          const text = octets.toString('latin1').replace('\xc0\x00\x02\x4d', '\xc0\x00\x02\x4e')
          return Buffer.from(text, 'latin1')
        }
        onMessages(upstream, message => socket.write(toTcpMessage(forge(message))))
        socket.on('close', () => upstream.destroy())
      })
      const through = createRfc2136Provider({ ...server.options(), server: double.server })
      expect(await through.read(zone, atOrBelow(zone), signal())).toMatchObject({
        kind: 'unavailable',
        reason: expect.stringContaining('signature of its response is not valid'),
      })
    })
  })
}

for (const kind of [bind, knot, powerdns]) describeRfc2136(kind)

describe.each([bind, knot])('rfc2136: a TSIG key of $name', kind => {
  test.skipIf(shouldSkip(kind.missingPrograms)).each(['hmac-sha224', 'hmac-sha384', 'hmac-sha512'] as const)(
    'with %s signs and verifies',
    async algorithm => {
      const former = /(reader\.key\.test(?:" \{ algorithm |\n +algorithm: ))hmac-sha256/
      await using server = await startServer(withSettings(kind, text => text.replace(former, `$1${algorithm}`)))
      const { tsig, ...options } = server.options('reader.key.test')
      const read = (key: Rfc2136Options['tsig']) =>
        createRfc2136Provider({ ...options, tsig: key }).read(server.zone, atOrBelow(server.zone), signal())
      expect(await read({ ...tsig, algorithm })).toMatchObject({ kind: 'read' })
      expect(await read(tsig)).toMatchObject({ kind: 'unavailable' })
    },
  )
})

import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { createServer, type RequestListener } from 'node:http'
import { promisify } from 'node:util'
import { listenOnLoopback } from '@pool/dev/ports'
import { missingDig, missingPowerdns } from '@pool/test-kit/dns/powerdns.ts'
import { shouldSkip } from '@pool/test-kit/optional-deps.ts'
import { afterAll, afterEach, beforeAll, describe, expect, type MockInstance, test, vi } from 'vitest'
import { isAtOrBelow, type RecordChange, type RecordSet, toOwnerName } from '../../src/dns/domain/rrset.ts'
import type { DnsProvider } from '../../src/dns/provider.ts'
import { createPowerdnsProvider } from '../../src/dns/providers/powerdns/index.ts'
import { atOrBelow, describeConformance, readAll } from './conformance.ts'
import { startPowerdnsSubject } from './support/powerdns.ts'

type Subject = Awaited<ReturnType<typeof startPowerdnsSubject>>

const signal = (): AbortSignal => AbortSignal.timeout(120_000)
const set = (name: string, type: string, ...values: string[]): RecordSet => ({ name, type, ttl: 300, values })
const upsert = (record: RecordSet): RecordChange => ({ kind: 'upsert', set: record })
const remove = (name: string, type = 'A'): RecordChange => ({ kind: 'delete', name, type })
const byName = (a: { name: string }, b: { name: string }): number => (a.name < b.name ? -1 : 1)

/** A server, and a provider that uses it. */
const startServer = async (listener: RequestListener) => {
  const server = createServer(listener)
  const url = `http://127.0.0.1:${await listenOnLoopback(server)}`
  return {
    provider: createPowerdnsProvider({ url, apiKey: 'a-key-of-ours', serverId: 'localhost' }),
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
}

/** A server with one fixed response. */
const startStub = (status: number, headers: Readonly<Record<string, string>>, body: string) =>
  startServer((request, response) => {
    request.resume()
    response.writeHead(status, headers).end(body)
  })

test.each([
  {
    status: 500,
    headers: {},
    body: '{"error":"a-key-of-ours"}',
    expected: { reason: 'PowerDNS answered 500: <redacted>.' },
  },
  { status: 503, headers: { 'Retry-After': '7' }, body: '', expected: { retryAfterMs: 7_000 } },
  { status: 429, headers: { 'Retry-After': '2' }, body: '', expected: { retryAfterMs: 2_000 } },
  {
    status: 302,
    headers: { Location: 'http://127.0.0.1:1/' },
    body: '',
    expected: { reason: 'PowerDNS answered 302.' },
  },
  { status: 403, headers: {}, body: '', expected: { reason: expect.stringContaining('pool.test'), scope: 'zone' } },
  { status: 404, headers: {}, body: '', expected: { reason: expect.stringContaining('pool.test'), scope: 'zone' } },
  { status: 401, headers: {}, body: '{"error":"a-key-of-ours"}', expected: { reason: expect.stringContaining('key') } },
])('status $status: unavailable', async ({ status, headers, body, expected }) => {
  await using stub = await startStub(status, headers, body)
  const results = [
    await stub.provider.read('pool.test', atOrBelow('pool.test'), signal()),
    await stub.provider.apply('pool.test', [remove('a.pool.test')], signal()),
  ]
  for (const result of results) {
    expect(result).toMatchObject({ kind: 'unavailable', ...expected })
    if (!('scope' in expected)) expect(result).not.toHaveProperty('scope')
    expect(JSON.stringify(result)).not.toContain('a-key-of-ours')
  }
})

test.each(['', '<html>', '[]', '{"rrsets":[{}]}', '{"name":"pool.test."}'])(
  'no zone in the response: %s',
  async body => {
    await using stub = await startStub(200, {}, body)
    expect(await stub.provider.read('pool.test', atOrBelow('pool.test'), signal())).toMatchObject({
      kind: 'unavailable',
      reason: expect.stringContaining('PowerDNS API'),
    })
  },
)

/** The bodies of the changes that were sent. A slow server also gets short queries that ask whether it is alive. */
const toPatches = (fetched: MockInstance<typeof fetch>): string[] =>
  fetched.mock.calls.flatMap(([, init]) => (init?.method === 'PATCH' ? [String(init.body)] : []))

/** A server whose response to a GET has the RRsets in `texts`, and that counts the queries for a name or the whole zone. */
const startZoneStub = async (texts: () => Iterable<string>) => {
  const queries: (string | null)[] = []
  const server = await startServer(async (request, response) => {
    request.resume()
    const query = new URL(request.url ?? '', 'http://localhost').searchParams
    if (query.get('rrsets') === 'false') {
      response.end('{"kind":"Native"}')
      return
    }
    queries.push(query.get('rrset_name'))
    if (queries.at(-1) !== null) {
      const rrset = { name: queries.at(-1), type: 'A', ttl: 60, records: [{ content: '192.0.2.1', disabled: false }] }
      response.end(JSON.stringify({ kind: 'Native', rrsets: [rrset] }))
      return
    }
    response.write('{"kind":"Native","rrsets":[')
    let isFirst = true
    for (const text of texts()) {
      if (!response.write(isFirst ? text : `,${text}`)) await new Promise(setImmediate)
      if (response.destroyed) return
      isFirst = false
    }
    response.end(']}')
  })
  return { ...server, queries }
}

function* rrsetTexts(count: number, content = '192.0.2.1') {
  for (let i = 0; i < count; i += 1)
    yield `{"name":"n${i}.pool.test.","type":"A","ttl":60,"records":[{"content":"${content}","disabled":false}]}`
}

test('a zone of more than 64 MiB is read, and only the wanted record sets are returned', async () => {
  await using stub = await startZoneStub(() => rrsetTexts(1_200, 'x'.repeat(60_000)))
  let count = 0
  for await (const part of stub.provider.readZone('pool.test', signal())) {
    if (part.kind !== 'part') throw new Error(JSON.stringify(part))
    count += part.records.length
  }
  expect(count).toBe(1_200)
  await using many = await startZoneStub(() => rrsetTexts(12_000))
  const result = await many.provider.read('pool.test', atOrBelow('n7.pool.test'), signal())
  expect(result).toEqual({
    kind: 'read',
    records: [{ name: 'n7.pool.test', type: 'A', ttl: 60, values: ['192.0.2.1'] }],
  })
})

test('a large zone is read by name to publish, and completely to release', async () => {
  await using stub = await startZoneStub(() => rrsetTexts(60_000))
  const names = { names: ['n1.pool.test', '*.n1.pool.test'], branches: [] }
  // The size of the zone is not known yet.
  expect(await stub.provider.read('pool.test', names, signal())).toMatchObject({ kind: 'read' })
  await readAll(stub.provider, 'pool.test', signal())
  stub.queries.length = 0
  const result = await stub.provider.read('pool.test', names, signal())
  expect(result.kind === 'read' && result.records.map(({ name }) => name)).toEqual(names.names)
  expect(stub.queries.sort()).toEqual(['*.n1.pool.test.', 'n1.pool.test.'])
  stub.queries.length = 0
  await stub.provider.read('pool.test', atOrBelow('n1.pool.test'), signal())
  expect(stub.queries).toEqual([null])
})

test('an empty apply sends no request; a rejection without a text has a reason', async () => {
  await using stub = await startStub(422, {}, '')
  expect(await stub.provider.apply('pool.test', [], signal())).toEqual({ kind: 'applied', rejected: [] })
  expect(await stub.provider.apply('pool.test', [remove('a.pool.test')], signal())).toEqual({
    kind: 'applied',
    rejected: [{ name: 'a.pool.test', reason: 'PowerDNS answered 422.' }],
  })
})

test.each([400, 409, 413, 422])('the reason of a rejection by %i is one line of bounded length', async status => {
  await using stub = await startStub(
    status,
    {},
    JSON.stringify({ error: `It says\r\n\ta-key-of-ours ${'no '.repeat(1_000)}` }),
  )
  const result = await stub.provider.apply('pool.test', [remove('a.pool.test')], signal())
  if (result.kind !== 'applied') throw new Error(result.reason)
  expect(result.rejected).toEqual([
    { name: 'a.pool.test', reason: expect.stringMatching(/^It says <redacted> no [\x20-\x7e]+$/) },
  ])
  expect(result.rejected[0]?.reason.length).toBeLessThanOrEqual(300)
})

test('a server that rejects everything gets three requests, and no record is blamed', async () => {
  await using stub = await startStub(422, {}, '{"error":"No, for a reason that names no record"}')
  const fetched = vi.spyOn(globalThis, 'fetch')
  const names = Array.from({ length: 1_000 }, (_, i) => `n${i}.pool.test`)
  const changes = names.map(name => remove(name))
  const result = await stub.provider.apply('pool.test', changes, signal())
  expect(toPatches(fetched)).toHaveLength(3)
  expect(result).toMatchObject({ kind: 'unavailable', scope: 'zone', reason: expect.stringContaining('no record') })
})

test.each(['Slave', 'Consumer'])('a secondary zone of the kind %s: only that zone is unavailable', async kind => {
  await using stub = await startStub(200, {}, JSON.stringify({ kind, rrsets: [] }))
  expect(await stub.provider.read('pool.test', atOrBelow('pool.test'), signal())).toEqual({
    kind: 'unavailable',
    reason: expect.stringContaining(kind),
    scope: 'zone',
  })
})

afterEach(() => {
  vi.restoreAllMocks()
})

if (shouldSkip(missingPowerdns)) test.skip(missingPowerdns ?? '', () => {})
else {
  describeConformance('powerdns', startPowerdnsSubject)

  describe('powerdns', () => {
    let subject: Subject
    let provider: DnsProvider
    let zone: string
    beforeAll(async () => {
      subject = await startPowerdnsSubject()
      provider = subject.provider
      zone = subject.zone
    })
    afterAll(() => subject?.[Symbol.asyncDispose]())
    afterEach(async () => {
      const answer = await subject.server.call('GET', `/zones/${zone}.`)
      const { rrsets } = answer as { rrsets: { name: string; type: string }[] }
      const unwanted = rrsets
        .filter(({ name }) => name !== `${zone}.`)
        .map(({ name, type }) => ({ name, type, changetype: 'DELETE' }))
      await subject.server.call('PATCH', `/zones/${zone}.`, { rrsets: unwanted })
    })

    const at = (relative: string): string => `${relative}.${zone}`
    const a = (relative: string, ...values: string[]): RecordSet => set(at(relative), 'A', ...values)
    const read = async (...owners: string[]): Promise<RecordSet[]> => {
      const result = await provider.read(zone, atOrBelow(...owners.map(at)), signal())
      if (result.kind !== 'read') throw new Error(result.reason)
      return result.records.filter(({ name }) => owners.some(owner => isAtOrBelow(name, at(owner)))).sort(byName)
    }
    /** Like the reconciler, applies skipped changes again: a slow server gets few calls at a time. */
    const apply = async (...changes: RecordChange[]) => {
      const rejected: { name: string; reason: string }[] = []
      for (let left = changes; left.length > 0; ) {
        const result = await provider.apply(zone, left, signal())
        if (result.kind !== 'applied') throw new Error(result.reason)
        const skipped = new Set(result.skipped)
        expect(skipped.size).toBeLessThan(left.length)
        rejected.push(...result.rejected)
        left = left.filter(change => skipped.has(toOwnerName(change)))
      }
      return rejected.toSorted(byName)
    }
    const patch = (rrset: { name: string } & Readonly<Record<string, unknown>>) =>
      subject.server.call('PATCH', `/zones/${zone}.`, { rrsets: [{ changetype: 'REPLACE', ttl: 60, ...rrset }] })
    const rrset = async (name: string) => {
      const answer = await subject.server.call('GET', `/zones/${zone}.`)
      return (answer as { rrsets: { name: string }[] }).rrsets.find(one => one.name === `${name}.`)
    }

    test('every type is stored as it was written', async () => {
      const sets = [
        set(at('acme'), 'MX', '10 mx1.example.', '5 MX2.example.'),
        set(at('*.acme'), 'TXT', '"a b" "c\\"d" "e\\\\f; \\195\\164"', '"v=spf1 -all"'),
        set(at('_sip._tcp.acme'), 'SRV', '1 2 443 host.example.', '1 2 444 host.example.'),
        set(at('caa.acme'), 'CAA', '0 issue "ca.example"'),
        set(at('six.acme'), 'AAAA', '2001:db8::1'),
        set(at('www.acme'), 'CNAME', 'web.example.'),
      ].sort(byName)
      expect(await apply(...sets.map(upsert))).toEqual([])
      expect(await read('acme')).toEqual(sets)
      expect(await subject.records()).toEqual(sets)
    })

    test('disabled records are not read, and survive an upsert and a deletion', async () => {
      const off = [{ content: '192.0.2.9', disabled: true }]
      await patch({ name: `${at('off')}.`, type: 'A', records: off })
      expect(await read('off')).toEqual([])
      expect(await apply(upsert(a('off', '192.0.2.1')))).toEqual([])
      expect(await read('off')).toEqual([a('off', '192.0.2.1')])
      expect(await rrset(at('off'))).toMatchObject({ ttl: 300, records: expect.arrayContaining(off) })
      expect(await apply(remove(at('off')))).toEqual([])
      expect(await read('off')).toEqual([])
      expect(await rrset(at('off'))).toMatchObject({ records: off })
      await subject.remove(at('off'), 'A')
      await read('off')
      expect(await apply(remove(at('off')))).toEqual([])
      expect(await rrset(at('off'))).toBeUndefined()
    })

    test('disabled records are reported as unserved, and a change can drop them', async () => {
      const off = [{ content: '192.0.2.9', disabled: true }]
      await patch({ name: `${at('off')}.`, type: 'A', records: off })
      await patch({ name: `${at('half')}.`, type: 'A', records: [...off, { content: '192.0.2.1', disabled: false }] })
      const result = await subject.provider.read(zone, atOrBelow(zone), signal())
      const unserved = [a('half', '192.0.2.9'), a('off', '192.0.2.9')].map(set => ({ ...set, ttl: 60 }))
      expect(result).toMatchObject({ unserved })
      const changes = [remove(at('off')), upsert(a('half', '192.0.2.2'))].map(change => ({
        ...change,
        dropsUnserved: true as const,
      }))
      expect(await apply(...changes)).toEqual([])
      expect(await rrset(at('off'))).toBeUndefined()
      expect(await rrset(at('half'))).toMatchObject({ records: [{ content: '192.0.2.2', disabled: false }] })
    })

    test('comments survive an upsert', async () => {
      const comments = [{ content: 'ask Ann first', account: 'ann' }]
      await patch({ name: `${at('a')}.`, type: 'A', records: [{ content: '192.0.2.9', disabled: false }], comments })
      expect(await apply(upsert(a('a', '192.0.2.1')))).toEqual([])
      expect(await rrset(at('a'))).toMatchObject({ comments, records: [{ content: '192.0.2.1', disabled: false }] })
    })

    test('a CNAME and an A record swap in one call, in any order', async () => {
      await subject.put(a('one', '192.0.2.1'))
      await subject.put(set(at('two'), 'CNAME', 'x.example.'))
      const cname = set(at('one'), 'CNAME', 'x.example.')
      const fetched = vi.spyOn(globalThis, 'fetch')
      expect(
        await apply(upsert(cname), remove(at('one')), upsert(a('two', '192.0.2.2')), remove(at('two'), 'CNAME')),
      ).toEqual([])
      expect(fetched).toHaveBeenCalledTimes(1)
      expect(await subject.records()).toEqual([cname, a('two', '192.0.2.2')])
    })

    test('the last of several changes to one RRset wins', async () => {
      expect(await apply(upsert(a('a', '192.0.2.1')), remove(at('b')), upsert(a('a', '192.0.2.2')))).toEqual([])
      expect(await apply(remove(at('a')), upsert(a('a', '192.0.2.3')))).toEqual([])
      expect(await subject.records()).toEqual([a('a', '192.0.2.3')])
    })

    const faults = (): { what: string; changes: RecordChange[]; name: string; reason: RegExp; calls: number }[] => [
      { what: 'not an address', changes: [upsert(a('x', 'nonsense'))], name: at('x'), reason: /nonsense/, calls: 2 },
      {
        what: 'beside a CNAME',
        changes: [upsert(a('theirs', '192.0.2.1'))],
        name: at('theirs'),
        reason: /Conflicts/,
        calls: 2,
      },
      {
        what: 'one faulty of two changes of a name',
        changes: [upsert(a('x', '192.0.2.1')), upsert(set(at('x'), 'MX', '5'))],
        name: at('x'),
        reason: /MX/,
        calls: 2,
      },
      {
        what: 'an unknown type',
        changes: [upsert(set(at('x'), 'BOGUS', '1'))],
        name: at('x'),
        reason: /type/,
        calls: 2,
      },
      { what: 'an empty label', changes: [upsert(a('x.', '192.0.2.1'))], name: at('x.'), reason: /parse/, calls: 2 },
      {
        what: 'a label that is too long',
        changes: [upsert(a('x'.repeat(64), '192.0.2.1'))],
        name: at('x'.repeat(64)),
        reason: /parse/,
        calls: 2,
      },
      // The error text has another spelling of the name, so bisection of 9 owners finds it.
      { what: 'a space', changes: [upsert(a('x x', '192.0.2.1'))], name: at('x x'), reason: /unsupp/, calls: 10 },
      {
        what: 'another zone',
        changes: [upsert(set('x.example', 'A', '192.0.2.1'))],
        name: 'x.example',
        reason: /not in the zone/,
        calls: 1,
      },
      {
        what: 'a negative TTL',
        changes: [upsert({ ...a('x', '192.0.2.1'), ttl: -1 })],
        name: at('x'),
        reason: /TTL/,
        calls: 1,
      },
      { what: 'no value', changes: [upsert(a('x'))], name: at('x'), reason: /no value/, calls: 1 },
    ]

    test('a faulty change rejects only its name, in few calls', async () => {
      const theirs = set(at('theirs'), 'CNAME', 'x.example.')
      for (const { what, changes, name, reason, calls } of faults()) {
        await subject.put(theirs)
        await subject.put(a('x', '192.0.2.99'))
        const good = Array.from({ length: 8 }, (_, i) => a(`good-${i}`, '192.0.2.1'))
        const [first, ...others] = good.map(upsert)
        const fetched = vi.spyOn(globalThis, 'fetch')
        const rejected = await apply(...(first ? [first] : []), ...changes, ...others)
        const count = toPatches(fetched).length
        fetched.mockRestore()
        expect({ what, rejected }).toEqual({ what, rejected: [{ name, reason: expect.stringMatching(reason) }] })
        expect({ what, count }).toEqual({ what, count: expect.toSatisfy((n: number) => n <= calls) })
        expect(await subject.records()).toEqual([...good, theirs, a('x', '192.0.2.99')])
        expect(await apply(...good.map(({ name: own }) => remove(own)))).toEqual([])
      }
    })

    test('1,000 changes, five faulty, two of them not named: few calls, and the others are stored', async () => {
      const good = Array.from({ length: 995 }, (_, i) => a(`n${i}`, '192.0.2.1'))
      const changes = good.map(upsert)
      const bad = ['bad-1', 'bad-2', 'bad-3', 'no name', 'no name either']
      bad.forEach((relative, i) => {
        changes.splice(i * 190 + 7, 0, upsert(a(relative, relative.startsWith('bad') ? 'x' : '192.0.2.1')))
      })
      const fetched = vi.spyOn(globalThis, 'fetch')
      expect((await apply(...changes)).map(({ name }) => name)).toEqual(bad.map(at).sort())
      expect(toPatches(fetched).length).toBeLessThan(60)
      fetched.mockRestore()
      expect(await subject.records()).toEqual(good.sort(byName))
    })

    test('more faults than the search limit: the rest is skipped, not rejected', async () => {
      const early = Array.from({ length: 300 }, (_, i) => upsert(a(`bad-${i}`, 'x')))
      const late = upsert(a('good', '192.0.2.1'))
      const fetched = vi.spyOn(globalThis, 'fetch')
      const result = await provider.apply(zone, [...early, late], signal())
      const patches = toPatches(fetched).length
      fetched.mockRestore()
      expect(patches).toBeLessThanOrEqual(50)
      if (result.kind !== 'applied') throw new Error(result.reason)
      // Each names one change. A slow server gets fewer of them.
      expect(result.rejected).toHaveLength(patches)
      expect(result.skipped).toHaveLength(301 - patches)
      expect(result.skipped).toContain(at('good'))
      expect(await subject.records()).toEqual([])
    })

    test('changes that exceed the body limit of the server are split', async () => {
      const text = Array.from({ length: 20 }, () => `"${'x'.repeat(250)}"`).join(' ')
      const sets = Array.from({ length: 600 }, (_, i) => set(at(`n${i}`), 'TXT', text))
      const tooMuch = sets.map(({ name, type, ttl, values: [content] }) => ({
        name: `${name}.`,
        type,
        ttl,
        changetype: 'REPLACE',
        records: [{ content, disabled: false }],
      }))
      // It responds with 400, or closes the connection early.
      await expect(subject.server.call('PATCH', `/zones/${zone}.`, { rrsets: tooMuch })).rejects.toThrow()
      const fetched = vi.spyOn(globalThis, 'fetch')
      expect(await apply(...sets.map(upsert))).toEqual([])
      const bodies = toPatches(fetched).map(body => body.length)
      expect(bodies).toHaveLength(4)
      expect(Math.max(...bodies)).toBeLessThan(1_050_000)
      fetched.mockRestore()
      expect(await subject.records()).toEqual(sets.sort(byName))
      expect(await apply(...sets.map(({ name }) => remove(name, 'TXT')))).toEqual([])
    })

    test('a secondary zone is not written: the server would accept the change and lose it', async () => {
      const copy = `copy-of-${zone}`
      await subject.server.call('POST', '/zones', { name: `${copy}.`, kind: 'Slave', masters: ['127.0.0.9'] })
      expect(await provider.read(copy, atOrBelow(copy), signal())).toMatchObject({ kind: 'unavailable', scope: 'zone' })
    })

    test('an unknown server id: unavailable, and the reason names it', async () => {
      const other = createPowerdnsProvider({ ...subject.server.options, serverId: 'elsewhere' })
      expect(await other.read(zone, atOrBelow(zone), signal())).toMatchObject({
        kind: 'unavailable',
        reason: expect.stringContaining('elsewhere'),
      })
    })

    test('a URL may end in a slash', async () => {
      const { options } = subject.server
      const other = createPowerdnsProvider({ ...options, url: `${options.url}/` })
      expect((await other.read(zone, atOrBelow(zone), signal())).kind).toBe('read')
    })

    test('a change increases the serial, so that secondaries transfer it', async () => {
      const serial = async () => ((await subject.server.call('GET', `/zones/${zone}.`)) as { serial: number }).serial
      const before = await serial()
      await apply(upsert(a('a', '192.0.2.1')))
      expect(await serial()).toBeGreaterThan(before)
    })

    if (shouldSkip(missingDig)) test.skip(missingDig ?? '', () => {})
    else
      test('dig returns the applied records', async () => {
        const dig = async (relative: string, type: string): Promise<string[]> => {
          const where = ['@127.0.0.1', '-p', String(subject.server.dnsPort), '+noall', '+answer', '+comments']
          const { stdout } = await promisify(execFile)('dig', [...where, at(relative), type])
          const status = /status: (\w+)/.exec(stdout)?.[1] ?? 'nothing'
          const lines = stdout.split('\n').filter(line => line !== '' && !line.startsWith(';'))
          return status === 'NOERROR' ? lines.map(line => line.split(/\s+/).slice(1).join(' ')).sort() : [status]
        }
        await apply(
          upsert(a('acme', '192.0.2.1', '192.0.2.2')),
          upsert(a('*.acme', '192.0.2.3')),
          upsert(set(at('acme'), 'TXT', '"say \\"yes\\"" "or no"')),
        )
        expect(await dig('acme', 'A')).toEqual(['300 IN A 192.0.2.1', '300 IN A 192.0.2.2'])
        expect(await dig('anything.acme', 'A')).toEqual(['300 IN A 192.0.2.3'])
        expect(await dig('acme', 'TXT')).toEqual(['300 IN TXT "say \\"yes\\"" "or no"'])
        await apply(remove(at('acme')), remove(at('*.acme')), remove(at('acme'), 'TXT'))
        expect(await dig('acme', 'A')).toEqual(['NXDOMAIN'])
      })
  })
}

import { randomBytes } from 'node:crypto'
import { createSocket } from 'node:dgram'
import { Resolver } from 'node:dns/promises'
import { once } from 'node:events'
import { connect, createServer } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { freePort } from '@pool/dev/ports'
import { until } from '@pool/test-kit/poll.ts'
import type { Answer, DecodedPacket, Packet } from 'dns-packet'
import { decode, encode, streamEncode } from 'dns-packet'
import fc from 'fast-check'
import postgres from 'postgres'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import type { RecordChange, RecordSet } from '../../src/dns/domain/rrset.ts'
import { resolve } from '../../src/dns/providers/local/domain/resolve.ts'
import type { ZoneTable } from '../../src/dns/providers/local/provider.ts'
import { createLocalProvider, createZoneTable } from '../../src/dns/providers/local/provider.ts'
import type { DnsServer } from '../../src/dns/providers/local/server.ts'
import { startDnsServer } from '../../src/dns/providers/local/server.ts'
import { createTestDatabase } from '../support/database.ts'
import { untilSessionsWait } from '../support/locks.ts'

const types = { int8: { to: 20, from: [20], serialize: String, parse: Number } }
const database = await createTestDatabase({ connections: 1 })
const dsn = database.url

const zone = 'pool.test'
const a = (name: string, ...values: string[]): RecordSet => ({ name, type: 'A', ttl: 60, values })
const upsert = (set: RecordSet): RecordChange => ({ kind: 'upsert', set })
const never = new AbortController().signal
const ignore = () => {}
const openSql = () => postgres(dsn, { types, onnotice: () => {} })

let sql: ReturnType<typeof openSql>
let table: ZoneTable
let server: DnsServer

beforeAll(async () => {
  sql = openSql()
  table = createZoneTable(sql)
  await apply(zone, [
    upsert(a('acme.pool.test', '192.0.2.1')),
    upsert(a('*.acme.pool.test', '192.0.2.2')),
    upsert(a('a.b.pool.test', '192.0.2.3')),
    upsert({ name: 'alias.pool.test', type: 'CNAME', ttl: 60, values: ['acme.pool.test.'] }),
    upsert({ name: 'chain.pool.test', type: 'CNAME', ttl: 60, values: ['alias.pool.test'] }),
    upsert({ name: 'dangling.pool.test', type: 'CNAME', ttl: 60, values: ['missing.pool.test.'] }),
    upsert({ name: 'loop1.pool.test', type: 'CNAME', ttl: 60, values: ['loop2.pool.test.'] }),
    upsert({ name: 'loop2.pool.test', type: 'CNAME', ttl: 60, values: ['loop1.pool.test.'] }),
    upsert({ name: 'types.pool.test', type: 'AAAA', ttl: 60, values: ['2001:db8::1'] }),
    upsert({ name: 'types.pool.test', type: 'TXT', ttl: 60, values: ['"one" "t\\"wo"'] }),
    upsert({ name: 'types.pool.test', type: 'MX', ttl: 60, values: ['10 mail.example.'] }),
    upsert(a('big.pool.test', ...Array.from({ length: 50 }, (_, i) => `192.0.2.${i}`))),
    upsert(a('huge.pool.test', ...Array.from({ length: 200 }, (_, i) => `192.0.2.${i}`))),
  ])
  server = await startDnsServer({ listZones: () => [zone, 'test.invalid'], lookup: table.lookup, onError: ignore })
})

afterAll(async () => {
  await server?.close()
  await sql?.end()
  await database.drop()
})

/** Applies with the current serial of the zone. */
const apply = async (at: string, changes: RecordChange[]) => table.apply(at, changes, (await table.read(at, [])).serial)

const ask = (name: string, more: Partial<Packet> & { type?: never } = {}): Packet => ({
  id: 4711,
  type: 'query',
  questions: [{ name, type: 'A' }],
  ...more,
})

const edns = (udpPayloadSize: number, ednsVersion = 0): Answer => ({
  type: 'OPT',
  name: '.',
  udpPayloadSize,
  extendedRcode: 0,
  ednsVersion,
  flags: 0x8000,
  flag_do: true,
  options: [],
})

type Reply = DecodedPacket & { rcode: string; opcode: string; size: number; octets: Buffer }
const decoded = (octets: Buffer): Reply => ({ ...(decode(octets) as Reply), size: octets.length, octets })
const toAnswerData = (reply: Packet) => reply.answers?.map(answer => ('data' in answer ? answer.data : undefined))

/** `undefined`: no reply within `timeoutMs`. */
const overUdp = async (message: Packet | Buffer, { port = server.port, timeoutMs = 30_000 } = {}) => {
  const socket = createSocket('udp4')
  try {
    const received = once(socket, 'message', { signal: AbortSignal.timeout(timeoutMs) })
    socket.send(Buffer.isBuffer(message) ? message : encode(message), port, '127.0.0.1')
    const [octets] = (await received) as [Buffer]
    return decoded(octets)
  } catch (error) {
    if (error instanceof Error && error.name === 'AbortError') return undefined
    throw error
  } finally {
    socket.close()
  }
}

/** Writes `pieces` separately, then FIN. Returns all replies in the order of arrival. */
const overTcp = async (pieces: Iterable<Buffer>, { pause = 0, port = server.port } = {}): Promise<Reply[]> => {
  const socket = connect({ port, host: '127.0.0.1', noDelay: true })
  const chunks: Buffer[] = []
  socket.on('data', chunk => chunks.push(chunk))
  const end = once(socket, 'close')
  for (const piece of pieces) {
    socket.write(piece)
    if (pause > 0) await sleep(pause)
  }
  socket.end()
  await end
  const replies = []
  for (let rest = Buffer.concat(chunks); rest.length > 0; rest = rest.subarray(2 + rest.readUInt16BE(0))) {
    replies.push(decoded(rest.subarray(2, 2 + rest.readUInt16BE(0))))
  }
  return replies
}

describe('the table', () => {
  const reads = async (at: string, owners: string[]) =>
    (await table.read(at, owners)).records.map(set => set.name).toSorted()

  test('reads each record set at or below an owner, by whole labels, once', async () => {
    const names = ['x.test', 'a.x.test', 'b.a.x.test', 'ab.x.test', 'a-b.x.test', 'z.x.test', '*.a.x.test']
    await apply(
      'x.test',
      names.map(name => upsert(a(name, '192.0.2.1'))),
    )
    await apply('y.test', [upsert(a('a.x.test', '192.0.2.9'))])
    expect(await reads('x.test', ['a.x.test'])).toEqual(['*.a.x.test', 'a.x.test', 'b.a.x.test'])
    expect(await reads('x.test', ['a.x.test', 'b.a.x.test', 'z.x.test', 'none.x.test'])).toEqual([
      '*.a.x.test',
      'a.x.test',
      'b.a.x.test',
      'z.x.test',
    ])
    expect(await reads('x.test', ['x.test'])).toEqual(names.toSorted())
    expect(await reads('x.test', ['x.test'])).toEqual(names.toSorted())
    expect(await reads('x.test', [])).toEqual([])
    expect(await reads('none.test', ['none.test'])).toEqual([])
  })

  test('reads exactly what was applied', async () => {
    const set: RecordSet = {
      name: 'q.exact.test',
      type: 'TXT',
      ttl: 0,
      values: ['"a, {b}"', '"it\'s \\"q\\""', '"NULL"'],
    }
    await apply('exact.test', [upsert(set)])
    expect((await table.read('exact.test', ['exact.test'])).records).toEqual([set])
  })

  test('increments the serial with each apply, and wraps at the end of a uint32', async () => {
    const one = upsert(a('one.s.test', '192.0.2.1'))
    expect((await table.lookup('s.test', 's.test')).serial).toBe(0)
    expect(await apply('s.test', [one, upsert(a('two.s.test', '192.0.2.1'))])).toBe(1)
    expect(await apply('s.test', [{ kind: 'delete', name: 'one.s.test', type: 'A' }])).toBe(2)
    expect(await reads('s.test', ['s.test'])).toEqual(['two.s.test'])
    await sql`update local_dns_zones set serial = 4294967295 where zone = 's.test'`
    expect(await apply('s.test', [one])).toBe(1)
    expect((await table.lookup('s.test', 's.test')).serial).toBe(1)
  })

  test('ignores a write with an older serial: a late write does not overwrite a newer one', async () => {
    const older = upsert(a('n.late.test', '192.0.2.1'))
    const newer = upsert(a('n.late.test', '192.0.2.2'))
    expect(await table.apply('late.test', [newer], 0)).toBe(1)
    expect(await table.apply('late.test', [older], 0)).toBeNull()
    expect((await table.read('late.test', ['late.test'])).records).toEqual([a('n.late.test', '192.0.2.2')])
  })

  test('of several changes to one record set the last applies', async () => {
    const first = upsert(a('n.last.test', '192.0.2.1'))
    const second = upsert(a('n.last.test', '192.0.2.2'))
    const gone: RecordChange = { kind: 'delete', name: 'n.last.test', type: 'A' }
    await apply('last.test', [first, gone, second])
    expect((await table.read('last.test', ['last.test'])).records).toEqual([a('n.last.test', '192.0.2.2')])
    await apply('last.test', [second, first, gone])
    expect((await table.read('last.test', ['last.test'])).records).toEqual([])
  })

  test('applies all or nothing', async () => {
    const bad = upsert({ name: 'bad.atom.test', type: 'A', ttl: -1, values: ['192.0.2.1'] })
    await expect(apply('atom.test', [upsert(a('good.atom.test', '192.0.2.1')), bad])).rejects.toMatchObject({
      constraint_name: 'local_dns_record_sets_ttl_is_not_negative',
    })
    expect((await table.read('atom.test', ['atom.test'])).records).toEqual([])
    expect((await table.lookup('atom.test', 'atom.test')).serial).toBe(0)
  })

  test('the view of a name resolves like the whole zone', async () => {
    const name = fc.array(fc.constantFrom('a', 'b', '*'), { minLength: 0, maxLength: 4 })
    let runs = 0
    const property = fc.asyncProperty(
      fc.uniqueArray(name, { maxLength: 8, selector: labels => labels.join('.') }),
      fc.array(name, { minLength: 5, maxLength: 10 }),
      async (owners, queried) => {
        runs += 1
        const at = `p${runs}.test`
        const under = (labels: string[]) => [...labels, at].join('.')
        await apply(
          at,
          owners.map(labels => upsert(a(under(labels), '192.0.2.1'))),
        )
        const whole = (await table.read(at, [at])).records
        for (const question of queried.map(labels => ({ name: under(labels), type: 'A' }))) {
          const view = await table.lookup(at, question.name)
          expect(resolve(at, view, question)).toEqual(resolve(at, { serial: view.serial, records: whole }, question))
        }
      },
    )
    await fc.assert(property, { numRuns: 60 })
  })

  test('in a zone of 100,000 names every query except the read of the whole zone uses an index', async () => {
    const changes = Array.from({ length: 100_000 }, (_, i) => upsert(a(`n${i}.large.test`, '192.0.2.1')))
    await apply('large.test', changes)
    await sql`analyze local_dns_record_sets`

    const sent: { query: string; parameters: string[] }[] = []
    const spied = postgres(dsn, { types, debug: (_, query, parameters) => sent.push({ query, parameters }) })
    const spiedTable = createZoneTable(spied)
    const owners = Array.from({ length: 100 }, (_, i) => `n${i * 7}.large.test`)
    expect((await spiedTable.read('large.test', owners)).records).toHaveLength(100)
    expect((await spiedTable.lookup('large.test', 'x.n5.large.test')).records).toHaveLength(2)
    await spiedTable.apply('large.test', [{ kind: 'delete', name: 'n1.large.test', type: 'A' }], 1)
    await spied.end()

    const plans = []
    for (const { query, parameters } of sent.filter(({ query }) => query.includes('local_dns_record_sets'))) {
      const rows = await sql.unsafe(`explain ${query}`, parameters)
      plans.push(rows.map(row => row['QUERY PLAN']).join('\n'))
    }
    const range = /Index Cond: .*reversed_name >= .*reversed_name < /
    expect(plans).toEqual([
      expect.stringMatching(range),
      expect.stringMatching(range),
      expect.stringMatching(/Index Cond: .*reversed_name = /),
    ])
    for (const plan of plans) expect(plan).not.toMatch(/Seq Scan on local_dns_record_sets/)
  })
})

describe('the server, queried by a stub resolver', () => {
  const resolver = () => {
    const made = new Resolver({ timeout: 30_000, tries: 1 })
    made.setServers([`127.0.0.1:${server.port}`])
    return made
  }

  test('answers every stored type', async () => {
    const client = resolver()
    expect(await client.resolve4('acme.pool.test', { ttl: true })).toEqual([{ address: '192.0.2.1', ttl: 60 }])
    expect(await client.resolve6('types.pool.test')).toEqual(['2001:db8::1'])
    expect(await client.resolveTxt('types.pool.test')).toEqual([['one', 't"wo']])
    expect(await client.resolveMx('types.pool.test')).toMatchObject([{ priority: 10, exchange: 'mail.example' }])
    expect(await client.resolveCname('alias.pool.test')).toEqual(['acme.pool.test'])
    expect(await client.resolveNs('pool.test')).toEqual(['localhost'])
    expect(await client.resolveSoa('pool.test')).toMatchObject({ nsname: 'localhost', serial: 1, minttl: 5 })
  })

  test('expands wildcards, follows aliases, and distinguishes NXDOMAIN from NODATA', async () => {
    const client = resolver()
    expect(await client.resolve4('anything.acme.pool.test')).toEqual(['192.0.2.2'])
    expect(await client.resolve4('chain.pool.test')).toEqual(['192.0.2.1'])
    await expect(client.resolve4('missing.pool.test')).rejects.toMatchObject({ code: 'ENOTFOUND' })
    await expect(client.resolve4('dangling.pool.test')).rejects.toMatchObject({ code: 'ENOTFOUND' })
    await expect(client.resolve4('b.pool.test')).rejects.toMatchObject({ code: 'ENODATA' })
    await expect(client.resolve6('acme.pool.test')).rejects.toMatchObject({ code: 'ENODATA' })
    await expect(client.resolve4('example.org')).rejects.toMatchObject({ code: 'EREFUSED' })
  })

  test('sends an answer too large for UDP over TCP', async () => {
    expect(await resolver().resolve4('huge.pool.test')).toHaveLength(200)
  })

  test('serves a change immediately', async () => {
    const client = resolver()
    await expect(client.resolve4('soon.pool.test')).rejects.toMatchObject({ code: 'ENOTFOUND' })
    await apply(zone, [upsert(a('soon.pool.test', '192.0.2.7'))])
    expect(await client.resolve4('soon.pool.test')).toEqual(['192.0.2.7'])
    await apply(zone, [{ kind: 'delete', name: 'soon.pool.test', type: 'A' }])
    await expect(client.resolve4('soon.pool.test')).rejects.toMatchObject({ code: 'ENOTFOUND' })
  })
})

describe('the server, on the wire', () => {
  test('sets AA, copies RD, clears RA, and echoes the question as sent', async () => {
    const reply = await overUdp(ask('aCmE.PooL.tEsT', { flags: 0x0100 }))
    expect(reply).toMatchObject({
      id: 4711,
      rcode: 'NOERROR',
      flag_aa: true,
      flag_rd: true,
      flag_ra: false,
      flag_tc: false,
    })
    expect(reply?.questions).toEqual([{ name: 'aCmE.PooL.tEsT', type: 'A', class: 'IN' }])
    expect(reply?.answers).toMatchObject([{ name: 'aCmE.PooL.tEsT', ttl: 60, data: '192.0.2.1' }])
    expect(reply?.additionals).toEqual([])
  })

  test('adds the SOA to a negative answer', async () => {
    for (const [name, rcode] of [
      ['missing.pool.test', 'NXDOMAIN'],
      ['b.pool.test', 'NOERROR'],
    ] as const) {
      const reply = await overUdp(ask(name))
      expect(reply).toMatchObject({ rcode, flag_aa: true, answers: [] })
      expect(reply?.authorities).toMatchObject([
        { type: 'SOA', name: zone, ttl: 5, data: { mname: 'localhost', minimum: 5 } },
      ])
    }
  })

  test('stops at a loop of aliases', async () => {
    const reply = await overUdp(ask('loop1.pool.test'))
    expect(reply?.rcode).toBe('NOERROR')
    expect(toAnswerData(reply ?? {})).toEqual(['loop2.pool.test', 'loop1.pool.test'])
  })

  test('responds to EDNS with EDNS, copies DO, and rejects an unknown version', async () => {
    const reply = await overUdp(ask('acme.pool.test', { additionals: [edns(4096)] }))
    expect(reply?.additionals).toMatchObject([
      { type: 'OPT', udpPayloadSize: 1232, ednsVersion: 0, flag_do: true, extendedRcode: 0 },
    ])
    const future = await overUdp(ask('acme.pool.test', { additionals: [edns(4096, 1)] }))
    expect(future).toMatchObject({ answers: [], additionals: [{ type: 'OPT', extendedRcode: 1, ednsVersion: 0 }] })
    expect(await overUdp(ask('acme.pool.test', { additionals: [edns(512), edns(512)] }))).toMatchObject({
      rcode: 'FORMERR',
    })
  })

  test.each([
    // 50 addresses need 831 octets without EDNS and 842 with it; 200 exceed the largest UDP response.
    ['big.pool.test', undefined, true],
    ['big.pool.test', 100, true],
    ['big.pool.test', 841, true],
    ['big.pool.test', 842, false],
    ['big.pool.test', 65_535, false],
    ['huge.pool.test', 65_535, true],
  ])('%s with a UDP size of %s: truncated %s', async (name, size, isTruncated) => {
    const reply = await overUdp(ask(name, size === undefined ? {} : { additionals: [edns(size)] }))
    expect(reply?.flag_tc).toBe(isTruncated)
    expect(reply?.size).toBeLessThanOrEqual(Math.min(Math.max(size ?? 512, 512), 1232))
    expect(reply?.answers?.length).toBe(isTruncated ? 0 : 50)
  })

  test.each([
    ['another zone', ask('example.org'), 'REFUSED'],
    ['the root', ask('.'), 'REFUSED'],
    ['a zone with our zone as a suffix of a label', ask('xpool.test'), 'REFUSED'],
    ['a transfer', ask('x', { questions: [{ name: zone, type: 'AXFR' }] }), 'REFUSED'],
    ['another class', ask('x', { questions: [{ name: zone, type: 'A', class: 'CH' }] }), 'REFUSED'],
    ['STATUS', ask(zone, { flags: 2 << 11 }), 'NOTIMP'],
    ['NOTIFY', ask(zone, { flags: 4 << 11 }), 'NOTIMP'],
    ['UPDATE', ask(zone, { flags: 5 << 11 }), 'NOTIMP'],
    ['no question', ask(zone, { questions: [] }), 'FORMERR'],
    [
      'two questions',
      ask(zone, {
        questions: [
          { name: zone, type: 'A' },
          { name: zone, type: 'A' },
        ],
      }),
      'FORMERR',
    ],
    ['an answer in the query', ask(zone, { answers: [{ type: 'A', name: zone, data: '192.0.2.1' }] }), 'FORMERR'],
    ['a header alone that promises a question', encode(ask(zone)).subarray(0, 12), 'FORMERR'],
    ['a question cut short', encode(ask(zone)).subarray(0, -1), 'FORMERR'],
    ['a pointer to itself', Buffer.from('126700000001000000000000c00c00010001', 'hex'), 'FORMERR'],
    ['a pointer into the header', Buffer.from('126700000001000000000000c00000010001', 'hex'), 'FORMERR'],
    ['an unknown label type', Buffer.from('12670000000100000000000041004100010001', 'hex'), 'FORMERR'],
    ['octets without sense', Buffer.concat([Buffer.from('12670000', 'hex'), Buffer.alloc(40, 0x7f)]), 'FORMERR'],
    ['a name of 256 octets', encode(ask(`${`${'a'.repeat(49)}.`.repeat(5)}abcd`)), 'FORMERR'],
  ])('%s', async (_, message, rcode) => {
    const id = Buffer.isBuffer(message) ? message.readUInt16BE(0) : message.id
    expect(await overUdp(message)).toMatchObject({ id, type: 'response', rcode, answers: [], flag_aa: false })
  })

  test('a dot or a non-ASCII octet within a label is preserved and echoed', async () => {
    const labels = (...parts: (string | number[])[]) =>
      Buffer.concat([
        ...parts.map(part => Buffer.concat([Buffer.from([part.length]), Buffer.from(part as string)])),
        Buffer.alloc(1),
      ])
    const query = (name: Buffer) =>
      Buffer.concat([Buffer.from('126700000001000000000000', 'hex'), name, Buffer.from('00010001', 'hex')])
    // The single label `a.b` is not the name a.b.pool.test, which exists.
    expect(await overUdp(query(labels('a.b', 'pool', 'test')))).toMatchObject({ rcode: 'NXDOMAIN' })
    const strange = query(labels([0xff, 0x00, 0x41], 'acme', 'pool', 'test'))
    const reply = await overUdp(strange)
    expect(toAnswerData(reply ?? {})).toEqual(['192.0.2.2'])
    expect(reply?.octets.subarray(12, strange.length)).toEqual(strange.subarray(12))
  })

  test.each([
    ['shorter than a header', Buffer.from('1267000000010000000000', 'hex')],
    ['empty', Buffer.alloc(0)],
    ['a response', encode({ ...ask('acme.pool.test'), type: 'response' })],
  ])('%s is dropped', async (_, message) => {
    expect(await overUdp(message, { timeoutMs: 150 })).toBeUndefined()
  })

  test('10,000 datagrams of garbage do not stop it', async () => {
    const socket = createSocket('udp4')
    for (let i = 1; i <= 10_000; i += 1) {
      const octets = randomBytes(1 + (i % 90))
      // Every second one has a valid header: a query with one question and some additional records.
      if (i % 2 && octets.length >= 12) Buffer.from([0, 0, 0, 1, 0, 0, 0, 0, 0, i % 3]).copy(octets, 2)
      await new Promise(sent => {
        socket.send(octets, server.port, '127.0.0.1', sent)
      })
      // Batches fit into the receive buffer, so that the kernel does not drop them.
      if (i % 50 === 0) expect(toAnswerData((await overUdp(ask('acme.pool.test'))) ?? {})).toEqual(['192.0.2.1'])
    }
    socket.close()
  })
})

describe('the server, over TCP', () => {
  const framed = (name: string, id: number) => streamEncode({ ...ask(name), id })

  test('answers pipelined queries on one connection', async () => {
    const names = Array.from({ length: 50 }, (_, i) => `h${i}.acme.pool.test`)
    const replies = await overTcp([Buffer.concat(names.map((name, i) => framed(name, i)))])
    expect(replies.map(reply => reply.id).toSorted((x = 0, y = 0) => x - y)).toEqual(names.map((_, i) => i))
    expect(replies.every(reply => reply.rcode === 'NOERROR' && reply.answers?.length === 1)).toBe(true)
  })

  test('reassembles queries that arrive octet by octet, and does not truncate', async () => {
    const octets = Buffer.concat([framed('huge.pool.test', 1), framed('missing.pool.test', 2)])
    const replies = await overTcp(
      Array.from(octets, octet => Buffer.from([octet])),
      { pause: 1 },
    )
    expect(replies.map(reply => [reply.id, reply.rcode, reply.answers?.length])).toEqual([
      [1, 'NOERROR', 200],
      [2, 'NXDOMAIN', 0],
    ])
    expect(replies[0]?.flag_tc).toBe(false)
  })

  test('continues after a message without a response and after FORMERR', async () => {
    const short = Buffer.from([0, 1, 7])
    const broken = Buffer.concat([Buffer.from([0, 20]), Buffer.from('12670000', 'hex'), Buffer.alloc(16, 0x7f)])
    const replies = await overTcp([Buffer.concat([short, broken, framed('acme.pool.test', 5)])])
    expect(replies.map(reply => reply.rcode)).toEqual(['FORMERR', 'NOERROR'])
  })

  test('survives clients that disconnect', async () => {
    for (let i = 0; i < 50; i += 1) {
      const socket = connect(server.port, '127.0.0.1')
      socket.on('error', ignore)
      await once(socket, 'connect')
      socket.write(framed('huge.pool.test', i).subarray(0, 2 + (i % 30)))
      if (i % 2) socket.resetAndDestroy()
      else socket.destroy()
    }
    expect(await overTcp([framed('acme.pool.test', 1)])).toHaveLength(1)
  })

  const open = ({ port }: DnsServer) => {
    const socket = connect(port, '127.0.0.1')
    socket.on('error', ignore)
    // The server may end or reset the connection.
    return { socket, closed: new Promise(resolve => socket.on('close', resolve)) }
  }
  const tcpOptions = () => ({ listZones: () => [zone], lookup: table.lookup, onError: ignore })

  test('closes idle and slow connections', async () => {
    const impatient = await startDnsServer({ ...tcpOptions(), tcpIdleMs: 200 })
    const [silent, zeros, ones] = [open(impatient), open(impatient), open(impatient)]
    const dribble = setInterval(() => {
      zeros.socket.write(Buffer.from([0]))
      ones.socket.write(Buffer.from([1]))
    }, 20)
    await Promise.all([silent.closed, zeros.closed, ones.closed])
    clearInterval(dribble)
    await impatient.close()
  })

  test('limits the number of connections', async () => {
    const small = await startDnsServer({ ...tcpOptions(), maxTcpConnections: 3 })
    const admitted = [open(small), open(small), open(small)]
    await Promise.all(admitted.map(({ socket }) => once(socket, 'connect')))
    await open(small).closed
    for (const { socket } of admitted) socket.destroy()
    await expect
      .poll(() => overTcp([framed('acme.pool.test', 1)], { port: small.port }).catch(() => []))
      .toHaveLength(1)
    await small.close()
  })
})

describe('the server, starting and stopping', () => {
  const options = { listZones: () => [zone], onError: ignore, lookup: async () => ({ serial: 1, records: [] }) }

  test('rejects with EADDRINUSE if the port is in use for UDP or TCP, and releases the other', async () => {
    await expect(startDnsServer({ ...options, port: server.port })).rejects.toMatchObject({ code: 'EADDRINUSE' })
    const port = await freePort()
    const udp = createSocket('udp4').bind(port, '127.0.0.1')
    await once(udp, 'listening')
    await expect(startDnsServer({ ...options, port })).rejects.toMatchObject({ code: 'EADDRINUSE' })
    const tcp = createServer().listen(port, '127.0.0.1')
    await once(tcp, 'listening')
    tcp.close()
    udp.close()
  })

  test('serves over IPv6', async () => {
    const six = await startDnsServer({ ...options, host: '::1' })
    const resolver = new Resolver({ timeout: 30_000, tries: 1 })
    resolver.setServers([`[::1]:${six.port}`])
    expect(await resolver.resolveNs(zone)).toEqual(['localhost'])
    await six.close()
  })

  test('closes twice, with open connections and a lookup in flight, and releases the port', async () => {
    const lookup = Promise.withResolvers<never>()
    lookup.promise.catch(ignore)
    const port = await freePort()
    let lookups = 0
    const one = await startDnsServer({
      ...options,
      port,
      lookup: () => {
        lookups += 1
        return lookup.promise
      },
    })
    const client = connect(one.port, '127.0.0.1')
    client.on('error', ignore)
    client.write(streamEncode(ask('acme.pool.test')))
    const unanswered = overUdp(ask('acme.pool.test'), { port, timeoutMs: 300 })
    await until('both lookups are in flight', () => lookups === 2)
    await Promise.all([one.close(), one.close()])
    lookup.reject(new Error('too late'))
    expect(await unanswered).toBeUndefined()
    await (await startDnsServer({ ...options, port })).close()
  })

  test('responds SERVFAIL if a lookup fails or hangs, and reports an outage once', async () => {
    const onError = vi.fn()
    let lookup: () => Promise<never> = () => Promise.reject(new Error('down'))
    const failing = await startDnsServer({
      ...options,
      onError,
      // All five queries below must arrive while two lookups hang.
      lookupTimeoutMs: 2_000,
      maxLookups: 2,
      lookup: () => lookup(),
    })
    const rcodes = async (count: number) =>
      (await Promise.all(Array.from({ length: count }, () => overUdp(ask(zone), { port: failing.port })))).map(
        reply => reply?.rcode,
      )
    expect(await rcodes(3)).toEqual(['SERVFAIL', 'SERVFAIL', 'SERVFAIL'])
    const called = vi.fn(() => new Promise<never>(ignore))
    lookup = called
    expect(await rcodes(5)).toEqual(Array(5).fill('SERVFAIL'))
    expect(called).toHaveBeenCalledTimes(2)
    expect(onError).toHaveBeenCalledTimes(1)
    await failing.close()
  })
})

describe('the provider', () => {
  const at = 'provider.test'
  const silence = { kind: 'unavailable', reason: 'The database of the local DNS server did not respond.' }

  test('applies and reads records, and rejects by owner what the server cannot serve', async () => {
    const provider = createLocalProvider({ table, onError: ignore })
    const changes = [
      upsert(a('good.provider.test', '192.0.2.1')),
      upsert(a('mixed.provider.test', '192.0.2.1')),
      upsert({ name: 'mixed.provider.test', type: 'NAPTR', ttl: 60, values: ['1 1 "u" "" "" a.example.'] }),
      upsert(a('elsewhere.test', '192.0.2.1')),
    ]
    for (const _ of ['first', 'again']) {
      const applied = await provider.apply(at, changes, never)
      expect(applied).toMatchObject({
        kind: 'applied',
        rejected: [{ name: 'mixed.provider.test' }, { name: 'elsewhere.test' }],
      })
      expect(await provider.read(at, { names: [], branches: [at] }, never)).toEqual({
        kind: 'read',
        records: [a('good.provider.test', '192.0.2.1')],
      })
    }
  })

  test('is unavailable without a database, without the text of the driver', async () => {
    const nowhere = postgres('postgres://nobody:secret@127.0.0.1:1/none', { connect_timeout: 1, types })
    const onError = vi.fn()
    const provider = createLocalProvider({ table: createZoneTable(nowhere), onError })
    expect(await provider.read(at, { names: ['a.provider.test'], branches: [] }, never)).toEqual(silence)
    expect(await provider.apply(at, [upsert(a('a.provider.test', '192.0.2.1'))], never)).toEqual(silence)
    expect(onError).toHaveBeenCalledTimes(2)
    await nowhere.end()
  })

  test('stops at an abort, and the late write does not overwrite a newer one', async () => {
    const provider = createLocalProvider({ table, onError: ignore })
    const set = (address: string) => upsert(a('late.provider.test', address))
    expect(await provider.apply(at, [set('192.0.2.1')], AbortSignal.abort())).toEqual(silence)
    await provider.read(at, { names: [], branches: [at] }, never)
    await sql.begin(async tx => {
      await tx`lock table local_dns_record_sets in access exclusive mode`
      const abort = new AbortController()
      const applied = provider.apply(at, [set('192.0.2.1')], abort.signal)
      const read = provider.read(at, { names: [], branches: [at] }, abort.signal)
      await untilSessionsWait(sql, 2)
      abort.abort()
      expect(await Promise.all([applied, read])).toEqual([silence, silence])
    })
    await expect
      .poll(async () => (await table.read(at, ['late.provider.test'])).records)
      .toEqual([a('late.provider.test', '192.0.2.1')])
    const overtaken = {
      kind: 'unavailable',
      reason: 'Zone serial conflict: the zone was modified concurrently.',
      scope: 'zone',
      isTransient: true,
    }
    expect(await provider.apply(at, [set('192.0.2.2')], never)).toEqual(overtaken)
    await provider.read(at, { names: [], branches: [at] }, never)
    expect(await provider.apply(at, [set('192.0.2.2')], never)).toEqual({ kind: 'applied', rejected: [] })
  })

  test('closes its server', async () => {
    const own = { listZones: () => [zone], lookup: table.lookup, onError: ignore, port: await freePort() }
    await createLocalProvider({ table, server: await startDnsServer(own), onError: ignore }).close()
    await (await startDnsServer(own)).close()
  })
})

import { createHmac } from 'node:crypto'
import type { Socket } from 'node:net'
import { framed, startDnsDouble } from '@pool/test-kit/dns/dns-double.ts'
import { describe, expect, test } from 'vitest'
import type { RecordChange, RecordSet } from '../../src/dns/domain/rrset.ts'
import { createRfc2136Provider, type Rfc2136Options } from '../../src/dns/providers/rfc2136/index.ts'

const signal = (): AbortSignal => AbortSignal.timeout(20_000)

const set = (name: string, type: string, ...values: string[]): RecordSet => ({ name, type, ttl: 300, values })
const upsert = (record: RecordSet): RecordChange => ({ kind: 'upsert', set: record })
const remove = (name: string, type: string): RecordChange => ({ kind: 'delete', name, type })

describe('rfc2136: a server that is none', () => {
  const zone = 'a.test'
  const secret = Buffer.alloc(32, 7)
  const options = (server: Rfc2136Options['server']): Rfc2136Options => ({
    server,
    tsig: { name: 'k.test', secret: secret.toString('base64'), algorithm: 'hmac-sha256' },
  })

  /** A signer of its own, so that a mistake in the code under test is not made twice (RFC 8945 section 5.3). */
  const signerOf = (request: Buffer) => {
    let prior = request.subarray(request.length - 38, request.length - 6)
    let covered: Buffer[] = []
    let isFirst = true
    const word = (value: number) => Buffer.from(value.toString(16).padStart(4, '0'), 'hex')
    const key = Buffer.from('016b047465737400', 'hex')
    const algorithm = Buffer.from('0b686d61632d73686132353600', 'hex')
    return {
      unsigned: (message: Buffer): Buffer => {
        covered = [...covered, message]
        return message
      },
      signed: (message: Buffer): Buffer => {
        const timers = Buffer.from(
          `${Math.floor(Date.now() / 1_000)
            .toString(16)
            .padStart(12, '0')}012c`,
          'hex',
        )
        const first = [key, Buffer.from('00ff00000000', 'hex'), algorithm, timers, Buffer.alloc(4)]
        const parts = [word(prior.length), prior, ...covered, message, ...(isFirst ? first : [timers])]
        const mac = createHmac('sha256', secret).update(Buffer.concat(parts)).digest()
        const data = [algorithm, timers, word(mac.length), mac, message.subarray(0, 2), Buffer.alloc(4)]
        const record = [key, Buffer.from('00fa00ff00000000003d', 'hex'), ...data]
        prior = mac
        covered = []
        isFirst = false
        const counted = Buffer.from(message)
        counted.writeUInt16BE(message.readUInt16BE(10) + 1, 10)
        return Buffer.concat([counted, ...record])
      },
    }
  }

  const soa = (serial: number) =>
    `016104746573740000060001000000050016${'00'.repeat(2)}${serial.toString(16).padStart(8, '0')}${'00'.repeat(16)}`
  const address = (label: string) =>
    `01${Buffer.from(label).toString('hex')}0161047465737400000100010000003c0004c0000201`
  const message = (request: Buffer, flags: number, ...records: string[]): Buffer => {
    const header = Buffer.alloc(12)
    request.copy(header, 0, 0, 2)
    header.writeUInt16BE(flags, 2)
    header.writeUInt16BE(records.length, 6)
    return Buffer.concat([header, Buffer.from(records.join(''), 'hex')])
  }
  const ok = 0x8000

  const good = set('x.a.test', 'A', '192.0.2.1')
  type Answer = (request: Buffer, socket: Socket) => void
  const send = (socket: Socket, ...messages: Buffer[]) => socket.write(Buffer.concat(messages.map(framed)))

  const readFrom = async (answer: Answer) => {
    await using double = await startDnsDouble(answer)
    const result = await createRfc2136Provider(options(double.server)).read(zone, ['x.a.test'], signal())
    if (result.kind === 'unavailable') expect(result.reason).toContain(zone)
    return result.kind === 'read' ? result.records.filter(({ name }) => name === 'x.a.test') : result.reason
  }

  test.each<[string, Answer]>([
    [
      'one message',
      (request, socket) => send(socket, signerOf(request).signed(message(request, ok, soa(1), address('x'), soa(1)))),
    ],
    [
      'several, each signed, in pieces of one octet',
      (request, socket) => {
        const { signed } = signerOf(request)
        const parts = [[soa(1)], [address('x')], [soa(1)]].map(records => signed(message(request, ok, ...records)))
        for (const octet of Buffer.concat(parts.map(framed))) socket.write(Buffer.of(octet))
      },
    ],
    [
      'several, the ones between unsigned',
      (request, socket) => {
        const { signed, unsigned } = signerOf(request)
        const first = signed(message(request, ok, soa(1)))
        const between = [address('x'), address('y')].map(record => unsigned(message(request, ok, record)))
        send(socket, first, ...between, signed(message(request, ok, soa(1))))
      },
    ],
  ])('a transfer in %s is read', async (_, answer) => {
    expect(await readFrom(answer)).toEqual([{ ...good, ttl: 60 }])
  })

  test('records of one set with several TTLs have the lowest; one beyond 31 bits is 0; names are in lower case', async () => {
    const ttls = (...hex: string[]) =>
      hex.map((ttl, i) => address('X').replace('0000003c0004c0000201', `${ttl}0004c000020${i}`))
    const records = async (...hex: string[]) =>
      readFrom((request, socket) =>
        send(socket, signerOf(request).signed(message(request, ok, soa(1), ...ttls(...hex), soa(1)))),
      )
    const values = ['192.0.2.0', '192.0.2.1', '192.0.2.2']
    expect(await records('00000009', '00000005', '00000007')).toEqual([{ name: 'x.a.test', type: 'A', ttl: 5, values }])
    expect(await records('80000000')).toEqual([{ name: 'x.a.test', type: 'A', ttl: 0, values: ['192.0.2.0'] }])
  })

  const whole = [soa(1), address('x'), soa(1)]
  const faults: [string, Answer, RegExp][] = [
    [
      'rubbish',
      (_, socket) => send(socket, Buffer.from('HTTP/1.1 400 Bad Request')),
      /response to another request|malformed DNS message/,
    ],
    ['half a header', (_, socket) => send(socket, Buffer.of(1, 2, 3)), /malformed DNS message/],
    ['nothing but the end', (_, socket) => socket.end(), /closed the connection/],
    ['half a message and the end', (_, socket) => socket.end(Buffer.of(1, 0, 1)), /closed the connection/],
    ['a reset', (_, socket) => socket.resetAndDestroy(), /could not be reached/],
    ['an unsigned zone', (request, socket) => send(socket, message(request, ok, ...whole)), /not signed/],
    [
      'an unsigned REFUSED',
      (request, socket) => send(socket, message(request, ok | 5)),
      /not signed; it answered REFUSED/,
    ],
    ['REFUSED', (request, socket) => send(socket, signerOf(request).signed(message(request, ok | 5))), /\(REFUSED\)/],
    ['NOTAUTH', (request, socket) => send(socket, signerOf(request).signed(message(request, ok | 9))), /\(NOTAUTH\)/],
    [
      'a truncated answer',
      (request, socket) => send(socket, signerOf(request).signed(message(request, ok | 0x200, ...whole))),
      /truncated/,
    ],
    [
      'the answer to another request',
      (request, socket) => {
        const other = Buffer.from(request)
        other.writeUInt16BE(request.readUInt16BE(0) ^ 1, 0)
        send(socket, signerOf(request).signed(message(other, ok, ...whole)))
      },
      /response to another request/,
    ],
    ['the question back', (request, socket) => send(socket, request), /response to another request/],
    [
      'a zone whose end is not signed',
      (request, socket) => {
        const { signed } = signerOf(request)
        send(socket, signed(message(request, ok, soa(1), address('x'))), message(request, ok, soa(1)))
      },
      /did not sign the end/,
    ],
    [
      'a zone whose end does not come',
      (request, socket) => {
        send(socket, signerOf(request).signed(message(request, ok, soa(1), address('x'))))
        socket.end()
      },
      /closed the connection/,
    ],
    [
      'a zone with another serial at the end',
      (request, socket) => send(socket, signerOf(request).signed(message(request, ok, soa(1), address('x'), soa(2)))),
      /changed it/,
    ],
    [
      'records behind the end',
      (request, socket) => send(socket, signerOf(request).signed(message(request, ok, ...whole, address('y')))),
      /after its end/,
    ],
    [
      'a zone without a beginning',
      (request, socket) => send(socket, signerOf(request).signed(message(request, ok, address('x'), soa(1)))),
      /no transfer/,
    ],
    [
      'nothing, signed',
      (request, socket) => send(socket, signerOf(request).signed(message(request, ok))),
      /no transfer/,
    ],
    [
      'an unsigned message slipped in',
      (request, socket) => {
        const { signed } = signerOf(request)
        const [first, last] = [signed(message(request, ok, soa(1))), signed(message(request, ok, soa(1)))]
        send(socket, first, message(request, ok, address('x')), last)
      },
      /signed wrongly/,
    ],
  ]
  test.each(faults)('%s: unavailable, with its reason', async (_, answer, reason) => {
    expect(await readFrom(answer)).toMatch(reason)
  })

  test('a server that says nothing is given up with the signal, and with close()', async () => {
    const asked = Promise.withResolvers<void>()
    await using double = await startDnsDouble(() => asked.resolve())
    const giveUp = new AbortController()
    const provider = createRfc2136Provider(options(double.server))
    const reading = provider.read(zone, 'all', giveUp.signal)
    await asked.promise
    giveUp.abort()
    expect(await reading).toMatchObject({ kind: 'unavailable', reason: expect.stringContaining('in time') })
    const applying = provider.apply(zone, [upsert(good)], signal())
    await provider.close()
    expect((await applying).kind).toBe('unavailable')
  })

  const rcode = { FORMERR: 1, SERVFAIL: 2, REFUSED: 5, NXRRSET: 8, NOTAUTH: 9 } as const
  /** Whether a request only asks what has been done: prerequisites, and no update. */
  const isEffects = (request: Buffer): boolean => request.readUInt16BE(6) > 0 && request.readUInt16BE(8) === 0

  /** `secondsEach`: how long each answer seems to take. */
  const update = async (
    rcodes: (request: Buffer) => number,
    changes: readonly RecordChange[],
    { secondsEach = 0 } = {},
  ) => {
    const asked: Buffer[] = []
    const began = Date.now()
    const now = () => began + asked.length * secondsEach * 1_000
    await using double = await startDnsDouble((request, socket) => {
      asked.push(request)
      // The opcode UPDATE comes back.
      send(socket, signerOf(request).signed(message(request, 0xa800 | rcodes(request))))
    })
    const provider = createRfc2136Provider({ ...options(double.server), now })
    return { result: await provider.apply(zone, changes, signal()), asked }
  }
  const many = Array.from({ length: 1_000 }, (_, i) => upsert(set(`n${i}.a.test`, 'A', '192.0.2.1')))

  test.each([
    ['SERVFAIL', false],
    ['FORMERR', false],
    ['REFUSED', true],
  ] as const)('a server that says %s to every update is at fault, not the changes', async (name, isOfZone) => {
    const { result, asked } = await update(request => (request.readUInt16BE(8) > 0 ? rcode[name] : 0), many)
    expect(result).toEqual({
      kind: 'unavailable',
      reason: expect.stringContaining(`takes no update of it (${name})`),
      ...(isOfZone ? { scope: 'zone' } : {}),
    })
    expect(asked.length).toBeLessThan(170)
  })

  test.each(['SERVFAIL', 'FORMERR', 'REFUSED'] as const)(
    'a change that is answered with %s is rejected, the others are done',
    async name => {
      const { result } = await update(
        request => (request.includes('bad') ? rcode[name] : 0),
        [upsert(good), upsert(set('bad.a.test', 'A', '192.0.2.1')), remove('gone.a.test', 'A')],
      )
      expect(result).toEqual({
        kind: 'applied',
        rejected: [{ name: 'bad.a.test', reason: expect.stringContaining(name) }],
      })
    },
  )

  test('where very many are rejected, the search ends: what was not got to is skipped, all else done or rejected', async () => {
    const taken = new Set<string>()
    const { result, asked } = await update(
      request => {
        if (request.includes('bad')) return rcode.SERVFAIL
        // With the octet of the length before it: a signature can hold any text.
        const labels = Array.from(request.toString('latin1').matchAll(/(.)(n\d+)/gs))
        const whole = labels.filter(([, length = '', label = '']) => length.charCodeAt(0) === label.length)
        if (!isEffects(request)) for (const [, , label = ''] of whole) taken.add(label)
        return 0
      },
      many.map((change, i) => (i % 2 ? change : upsert(set(`n${i}bad.a.test`, 'A', '192.0.2.1')))),
    )
    if (result.kind !== 'applied') throw new Error(result.reason)
    const { rejected, skipped = [] } = result
    expect(asked.length).toBeLessThan(340)
    expect(rejected.length).toBeGreaterThan(5)
    for (const { name } of rejected) expect(name).toContain('bad')
    const told = [...rejected.map(({ name }) => name), ...skipped, ...[...taken].map(label => `${label}.a.test`)]
    expect(new Set(told).size).toBe(told.length)
    expect(told).toHaveLength(many.length)
  })

  test('of more than a slow server does in the time, the rest is skipped', async () => {
    const { result, asked } = await update(() => 0, many, { secondsEach: 2 })
    if (result.kind !== 'applied') throw new Error(result.reason)
    expect(result.rejected).toEqual([])
    // Begun at 0, 2 and 4 s, with 100 names each; then one message that asks what was done.
    expect(asked.map(isEffects)).toEqual([false, false, false, true])
    expect(result.skipped).toEqual(many.slice(300).map(change => change.kind === 'upsert' && change.set.name))
  })

  test('a server that does not serve the zone as its primary is asked once', async () => {
    const { result, asked } = await update(() => rcode.NOTAUTH, many)
    expect(result).toMatchObject({ kind: 'unavailable', scope: 'zone', reason: expect.stringContaining('NOTAUTH') })
    expect(asked).toHaveLength(1)
  })

  test('success that is none is told, of what it is none of', async () => {
    const { result } = await update(
      request => (isEffects(request) && request.includes('alias') ? rcode.NXRRSET : 0),
      [upsert(set('alias.a.test', 'A', '192.0.2.1')), upsert(good), remove('gone.a.test', 'A')],
    )
    expect(result).toEqual({
      kind: 'applied',
      rejected: [{ name: 'alias.a.test', reason: expect.stringContaining('ignored') }],
    })
  })

  test.each([
    ['says that all is done and does nothing', rcode.NXRRSET, 'ignores every update'],
    ['does not tell what it did', rcode.SERVFAIL, 'does not tell'],
  ])('a server that %s: unavailable', async (_, code, reason) => {
    const { result } = await update(request => (isEffects(request) ? code : 0), many)
    expect(result).toEqual({ kind: 'unavailable', reason: expect.stringContaining(reason) })
  })

  test.each<[string, Answer, boolean]>([
    ['a signed REFUSED', (request, socket) => send(socket, signerOf(request).signed(message(request, ok | 5))), true],
    ['a signed NOTAUTH', (request, socket) => send(socket, signerOf(request).signed(message(request, ok | 9))), true],
    ['an unsigned NOTAUTH', (request, socket) => send(socket, message(request, ok | 9)), true],
    ['a signed SERVFAIL', (request, socket) => send(socket, signerOf(request).signed(message(request, ok | 2))), false],
    ['an unsigned SERVFAIL', (request, socket) => send(socket, message(request, ok | 2)), false],
    ['no answer', (_, socket) => socket.end(), false],
  ])('%s: whether it is of the zone alone', async (_, answer, isOfZone) => {
    await using double = await startDnsDouble(answer)
    const result = await createRfc2136Provider(options(double.server)).read(zone, 'all', signal())
    expect(result).toEqual({ kind: 'unavailable', reason: expect.any(String), ...(isOfZone ? { scope: 'zone' } : {}) })
  })

  test.each([
    ['no name', { name: 'a..b' }],
    ['no secret', { secret: '' }],
  ])('a key with %s is a mistake of the configuration', (_, fault) => {
    const { server, tsig } = options({ host: '127.0.0.1', port: 53 })
    expect(() => createRfc2136Provider({ server, tsig: { ...tsig, ...fault } })).toThrow(TypeError)
  })
})

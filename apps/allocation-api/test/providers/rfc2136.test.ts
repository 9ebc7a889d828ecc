import { createHmac } from 'node:crypto'
import type { Socket } from 'node:net'
import { startDnsDouble, toTcpMessage } from '@pool/test-kit/dns/dns-double.ts'
import { describe, expect, test } from 'vitest'
import type { RecordChange, RecordSet } from '../../src/dns/domain/rrset.ts'
import { createRfc2136Provider, type Rfc2136Options } from '../../src/dns/providers/rfc2136/index.ts'
import { atOrBelow } from './conformance.ts'

const signal = (): AbortSignal => AbortSignal.timeout(120_000)

const set = (name: string, type: string, ...values: string[]): RecordSet => ({ name, type, ttl: 300, values })
const upsert = (record: RecordSet): RecordChange => ({ kind: 'upsert', set: record })
const remove = (name: string, type: string): RecordChange => ({ kind: 'delete', name, type })

describe('rfc2136: a faulty server', () => {
  const zone = 'a.test'
  const secret = Buffer.alloc(32, 7)
  const options = (server: Rfc2136Options['server']): Rfc2136Options => ({
    server,
    tsig: { name: 'k.test', secret: secret.toString('base64') },
  })

  /** A signer of its own, so that a mistake in the code under test is not made twice (RFC 8945 section 5.3). */
  const createSigner = (request: Buffer) => {
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
  type Handler = (request: Buffer, socket: Socket) => void
  const send = (socket: Socket, ...messages: Buffer[]) => socket.write(Buffer.concat(messages.map(toTcpMessage)))

  const readFrom = async (answer: Handler) => {
    await using double = await startDnsDouble(answer)
    const result = await createRfc2136Provider(options(double.server)).read(zone, atOrBelow('x.a.test'), signal())
    if (result.kind === 'unavailable') expect(result.reason).toContain(zone)
    return result.kind === 'read' ? result.records.filter(({ name }) => name === 'x.a.test') : result.reason
  }

  test.each<[string, Handler]>([
    [
      'one message',
      (request, socket) =>
        send(socket, createSigner(request).signed(message(request, ok, soa(1), address('x'), soa(1)))),
    ],
    [
      'several, each signed, in pieces of one octet',
      (request, socket) => {
        const { signed } = createSigner(request)
        const parts = [[soa(1)], [address('x')], [soa(1)]].map(records => signed(message(request, ok, ...records)))
        for (const octet of Buffer.concat(parts.map(toTcpMessage))) socket.write(Buffer.of(octet))
      },
    ],
    [
      'several, the ones between unsigned',
      (request, socket) => {
        const { signed, unsigned } = createSigner(request)
        const first = signed(message(request, ok, soa(1)))
        const between = [address('x'), address('y')].map(record => unsigned(message(request, ok, record)))
        send(socket, first, ...between, signed(message(request, ok, soa(1))))
      },
    ],
  ])('a transfer in %s is read', async (_, answer) => {
    expect(await readFrom(answer)).toEqual([{ ...good, ttl: 60 }])
  })

  test('an RRset with several TTLs gets the lowest; a TTL beyond 31 bits is 0; names are in lower case', async () => {
    const ttls = (...hex: string[]) =>
      hex.map((ttl, i) => address('X').replace('0000003c0004c0000201', `${ttl}0004c000020${i}`))
    const records = async (...hex: string[]) =>
      readFrom((request, socket) =>
        send(socket, createSigner(request).signed(message(request, ok, soa(1), ...ttls(...hex), soa(1)))),
      )
    const values = ['192.0.2.0', '192.0.2.1', '192.0.2.2']
    expect(await records('00000009', '00000005', '00000007')).toEqual([{ name: 'x.a.test', type: 'A', ttl: 5, values }])
    expect(await records('80000000')).toEqual([{ name: 'x.a.test', type: 'A', ttl: 0, values: ['192.0.2.0'] }])
  })

  const whole = [soa(1), address('x'), soa(1)]
  const faults: [string, Handler, RegExp][] = [
    [
      'a response that is not DNS',
      (_, socket) => send(socket, Buffer.from('HTTP/1.1 400 Bad Request')),
      /response to another request|malformed DNS message/,
    ],
    ['half a header', (_, socket) => send(socket, Buffer.of(1, 2, 3)), /malformed DNS message/],
    ['a closed connection', (_, socket) => socket.end(), /closed the connection/],
    ['half a message and a closed connection', (_, socket) => socket.end(Buffer.of(1, 0, 1)), /closed the connection/],
    ['a reset', (_, socket) => socket.resetAndDestroy(), /could not be reached/],
    ['an unsigned zone', (request, socket) => send(socket, message(request, ok, ...whole)), /not signed/],
    [
      'an unsigned REFUSED',
      (request, socket) => send(socket, message(request, ok | 5)),
      /not signed; its RCODE is REFUSED/,
    ],
    [
      'REFUSED',
      (request, socket) => send(socket, createSigner(request).signed(message(request, ok | 5))),
      /\(REFUSED\)/,
    ],
    [
      'NOTAUTH',
      (request, socket) => send(socket, createSigner(request).signed(message(request, ok | 9))),
      /\(NOTAUTH\)/,
    ],
    [
      'a truncated response',
      (request, socket) => send(socket, createSigner(request).signed(message(request, ok | 0x200, ...whole))),
      /truncated/,
    ],
    [
      'the response to another request',
      (request, socket) => {
        const other = Buffer.from(request)
        other.writeUInt16BE(request.readUInt16BE(0) ^ 1, 0)
        send(socket, createSigner(request).signed(message(other, ok, ...whole)))
      },
      /response to another request/,
    ],
    ['the request echoed', (request, socket) => send(socket, request), /response to another request/],
    [
      'a zone whose end is not signed',
      (request, socket) => {
        const { signed } = createSigner(request)
        send(socket, signed(message(request, ok, soa(1), address('x'))), message(request, ok, soa(1)))
      },
      /did not sign the end/,
    ],
    [
      'a zone without its end',
      (request, socket) => {
        send(socket, createSigner(request).signed(message(request, ok, soa(1), address('x'))))
        socket.end()
      },
      /closed the connection/,
    ],
    [
      'a zone with another serial at the end',
      (request, socket) =>
        send(socket, createSigner(request).signed(message(request, ok, soa(1), address('x'), soa(2)))),
      /changed it/,
    ],
    [
      'records after the end',
      (request, socket) => send(socket, createSigner(request).signed(message(request, ok, ...whole, address('y')))),
      /after its end/,
    ],
    [
      'a zone without a beginning',
      (request, socket) => send(socket, createSigner(request).signed(message(request, ok, address('x'), soa(1)))),
      /not a transfer/,
    ],
    [
      'a signed empty message',
      (request, socket) => send(socket, createSigner(request).signed(message(request, ok))),
      /not a transfer/,
    ],
    [
      'an inserted unsigned message',
      (request, socket) => {
        const { signed } = createSigner(request)
        const [first, last] = [signed(message(request, ok, soa(1))), signed(message(request, ok, soa(1)))]
        send(socket, first, message(request, ok, address('x')), last)
      },
      /signature of its response is not valid/,
    ],
  ]
  test.each(faults)('%s: unavailable, with the cause', async (_, answer, reason) => {
    expect(await readFrom(answer)).toMatch(reason)
  })

  test('the signal and close() abort a call to a server that does not respond', async () => {
    const requested = Promise.withResolvers<void>()
    await using double = await startDnsDouble(() => requested.resolve())
    const controller = new AbortController()
    const provider = createRfc2136Provider(options(double.server))
    const reading = provider.read(zone, atOrBelow(zone), controller.signal)
    await requested.promise
    controller.abort()
    expect(await reading).toMatchObject({ kind: 'unavailable', reason: expect.stringContaining('in time') })
    const applying = provider.apply(zone, [upsert(good)], signal())
    await provider.close()
    expect((await applying).kind).toBe('unavailable')
  })

  const rcode = { FORMERR: 1, SERVFAIL: 2, REFUSED: 5, NXRRSET: 8, NOTAUTH: 9 } as const
  /** Whether a request is an effect check: it has prerequisites and no updates. */
  const isEffectCheck = (request: Buffer): boolean => request.readUInt16BE(6) > 0 && request.readUInt16BE(8) === 0

  /** `secondsEach`: the simulated duration of each response. */
  const update = async (
    rcodes: (request: Buffer) => number,
    changes: readonly RecordChange[],
    { secondsEach = 0 } = {},
  ) => {
    const requests: Buffer[] = []
    const began = Date.now()
    const now = () => began + requests.length * secondsEach * 1_000
    await using double = await startDnsDouble((request, socket) => {
      requests.push(request)
      // With the opcode UPDATE.
      send(socket, createSigner(request).signed(message(request, 0xa800 | rcodes(request))))
    })
    const provider = createRfc2136Provider({ ...options(double.server), now })
    return { result: await provider.apply(zone, changes, signal()), requests }
  }
  const many = Array.from({ length: 1_000 }, (_, i) => upsert(set(`n${i}.a.test`, 'A', '192.0.2.1')))

  test.each([
    ['SERVFAIL', true],
    ['FORMERR', false],
    ['REFUSED', true],
  ] as const)(
    'a server that responds %s to every update is unavailable; no change is rejected',
    async (name, isOfZone) => {
      const { result, requests } = await update(request => (request.readUInt16BE(8) > 0 ? rcode[name] : 0), many)
      expect(result).toMatchObject({
        kind: 'unavailable',
        reason: expect.stringContaining(`rejects every update of it (${name})`),
        ...(isOfZone ? { scope: 'zone' } : {}),
      })
      // The batch, its first and its last update, and whether the key may update anything.
      expect(requests.length).toBeLessThanOrEqual(name === 'REFUSED' ? 161 : 3)
    },
  )

  test.each(['SERVFAIL', 'FORMERR', 'REFUSED'] as const)(
    'a change with the response %s is rejected, the others are applied',
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

  test('with many rejections the bisection stops: untried changes are skipped, all others are applied or rejected', async () => {
    const applied = new Set<string>()
    const { result, requests } = await update(
      request => {
        if (request.includes('bad')) return rcode.SERVFAIL
        // Compare the length octet before the label, because a signature can contain any text.
        const labels = Array.from(request.toString('latin1').matchAll(/(.)(n\d+)/gs))
        const whole = labels.filter(([, length = '', label = '']) => length.charCodeAt(0) === label.length)
        if (!isEffectCheck(request)) for (const [, , label = ''] of whole) applied.add(label)
        return 0
      },
      many.map((change, i) => (i % 2 ? change : upsert(set(`n${i}bad.a.test`, 'A', '192.0.2.1')))),
    )
    if (result.kind !== 'applied') throw new Error(result.reason)
    const { rejected, skipped = [] } = result
    expect(requests.length).toBeLessThan(340)
    expect(rejected.length).toBeGreaterThan(5)
    for (const { name } of rejected) expect(name).toContain('bad')
    const reported = [...rejected.map(({ name }) => name), ...skipped, ...[...applied].map(label => `${label}.a.test`)]
    expect(new Set(reported).size).toBe(reported.length)
    expect(reported).toHaveLength(many.length)
  })

  test('changes that a slow server does not reach in time are skipped', async () => {
    const { result, requests } = await update(() => 0, many, { secondsEach: 2 })
    if (result.kind !== 'applied') throw new Error(result.reason)
    expect(result.rejected).toEqual([])
    // Updates of 100 names each at 0, 2 and 4 s, then one effect check.
    expect(requests.map(isEffectCheck)).toEqual([false, false, false, true])
    expect(result.skipped).toEqual(many.slice(300).map(change => change.kind === 'upsert' && change.set.name))
  })

  test('a server that is not the primary of the zone gets one request', async () => {
    const { result, requests } = await update(() => rcode.NOTAUTH, many)
    expect(result).toMatchObject({ kind: 'unavailable', scope: 'zone', reason: expect.stringContaining('NOTAUTH') })
    expect(requests).toHaveLength(1)
  })

  test('a change that the server reports as applied but ignores is rejected', async () => {
    const { result } = await update(
      request => (isEffectCheck(request) && request.includes('alias') ? rcode.NXRRSET : 0),
      [upsert(set('alias.a.test', 'A', '192.0.2.1')), upsert(good), remove('gone.a.test', 'A')],
    )
    expect(result).toEqual({
      kind: 'applied',
      rejected: [{ name: 'alias.a.test', reason: expect.stringContaining('ignored') }],
    })
  })

  test.each([
    ['reports success and applies nothing', rcode.NXRRSET, 'ignores every update'],
    ['does not show what it applied', rcode.SERVFAIL, 'does not show'],
  ])('a server that %s: unavailable', async (_, code, reason) => {
    const { result } = await update(request => (isEffectCheck(request) ? code : 0), many)
    expect(result).toMatchObject({ kind: 'unavailable', reason: expect.stringContaining(reason) })
  })

  test.each<[string, Handler, boolean]>([
    [
      'a signed REFUSED',
      (request, socket) => send(socket, createSigner(request).signed(message(request, ok | 5))),
      true,
    ],
    [
      'a signed NOTAUTH',
      (request, socket) => send(socket, createSigner(request).signed(message(request, ok | 9))),
      true,
    ],
    ['an unsigned NOTAUTH', (request, socket) => send(socket, message(request, ok | 9)), true],
    [
      'a signed SERVFAIL',
      (request, socket) => send(socket, createSigner(request).signed(message(request, ok | 2))),
      true,
    ],
    ['an unsigned SERVFAIL', (request, socket) => send(socket, message(request, ok | 2)), false],
    ['no answer', (_, socket) => socket.end(), false],
    ['a malformed message', (request, socket) => send(socket, message(request, ok, 'ff')), true],
  ])('%s: whether only the zone is affected', async (_, answer, isOfZone) => {
    await using double = await startDnsDouble(answer)
    const result = await createRfc2136Provider(options(double.server)).read(zone, atOrBelow(zone), signal())
    expect(result).toMatchObject({ kind: 'unavailable', ...(isOfZone ? { scope: 'zone' } : {}) })
    if (!isOfZone) expect(result).not.toHaveProperty('scope')
  })

  test.each([
    ['an invalid name', { name: 'a..b' }],
    ['an empty secret', { secret: '' }],
  ])('a key with %s is a configuration error', (_, fault) => {
    const { server, tsig } = options({ host: '127.0.0.1', port: 53 })
    expect(() => createRfc2136Provider({ server, tsig: { ...tsig, ...fault } })).toThrow(TypeError)
  })
})

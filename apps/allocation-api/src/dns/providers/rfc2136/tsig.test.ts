import { createHmac } from 'node:crypto'
import { expect, test } from 'vitest'
import { FormatError } from '../../wire/rdata.ts'
import { sign, startChain, type TsigKey, toTsigSize, verify } from './tsig.ts'

const secret = Buffer.from('c2VjcmV0c2VjcmV0c2VjcmV0c2VjcmV0', 'base64')
const key: TsigKey = { name: 'k.test', secret }

/** Recorded messages: an update signed by nsupdate 9.18, and a transfer by dig 9.18 from Knot 3.2. */
const byNsupdate = Buffer.from(
  '6688280000010000000200010161047465737400000600010178c00c000100ff000000000000c018000100010000003c0004c0000201036b657904746573740000fa00ff00000000003d0b686d61632d7368613235360000006b01d122012c0020487c61e79d833bb87484f3f98866ee596f55e641a43dcae48eb3dc378a7c5aa4668800000000',
  'hex',
)
const byDig = Buffer.from(
  'e69800200001000000000002016104746573740000fc000100002904d000000000000c000a000812c14af2114411ba016b04746573740000fa00ff00000000003d0b686d61632d7368613235360000006b01d124012c00206d8e15a107d1cac8da4c3bfb3fbc3705e4c351061b5bd51a9518df8b0d311da2e69800000000',
  'hex',
)
const byKnot = Buffer.from(
  'e69880000001000300000002016104746573740000fc0001c00c0006000100000e10001d026e73c00c0168c00c0000000100000e1000000258000151800000012cc00c0002000100000e100005026e73c00cc00c0006000100000e10001d026e73c00c0168c00c0000000100000e1000000258000151800000012c00002904d0000000000000016b04746573740000fa00ff00000000003d0b686d61632d7368613235360000006b01d124012c00209c5bf29ae132149ab78248a50e5613852634728c1a5d41f07dfa783db7b472e4e69800000000',
  'hex',
)

/** The message without its TSIG record, which is its last record. */
const withoutTsig = (message: Buffer, signer: TsigKey): Buffer => {
  const bare = Buffer.from(message.subarray(0, message.length - toTsigSize(signer)))
  bare.writeUInt16BE(bare.readUInt16BE(10) - 1, 10)
  return bare
}
const readSignedAt = (message: Buffer): number => message.readUIntBE(message.length - 48, 6)
const readMac = (message: Buffer): Buffer => message.subarray(message.length - 38, message.length - 6)

test.each([
  ['nsupdate', byNsupdate, { name: 'key.test', secret }],
  ['dig', byDig, key],
])('sign produces the same octets as %s at the same time', (_, message, signer) => {
  const signed = sign(withoutTsig(message, signer), signer, readSignedAt(message))
  expect(signed.message.toString('hex')).toBe(message.toString('hex'))
  expect(signed.mac).toEqual(readMac(message))
})

const changed = (message: Buffer, at: number, to: number): Buffer => {
  const copy = Buffer.from(message)
  copy[at < 0 ? copy.length + at : at] = to
  return copy
}
const at = readSignedAt(byKnot)
/** With its MAC truncated to 16 octets. RFC 8945 section 5.2.2.1 allows this; the provider does not. */
const shortened = Buffer.concat([
  changed(changed(byKnot, -62, 0x2d), -39, 16).subarray(0, byKnot.length - 22),
  byKnot.subarray(-6),
])

test.each([
  ['unchanged', byKnot, key, at, 'verified'],
  ['300 s later', byKnot, key, at + 300, 'verified'],
  ['with another id, set by a forwarder', changed(byKnot, 0, 1), key, at, 'verified'],
  ['301 s later', byKnot, key, at + 301, "the clocks differ: the server's clock is 301 s behind (BADTIME)"],
  ['an hour before', byKnot, key, at - 3_600, "the clocks differ: the server's clock is 3600 s ahead (BADTIME)"],
  ['with a changed record', changed(byKnot, 60, 0xff), key, at, 'the signature of its response is not valid'],
  ['with another time', changed(byKnot, -43, 0), key, at, 'the signature of its response is not valid'],
  ['with another fudge', changed(byKnot, -42, 9), key, at, 'the signature of its response is not valid'],
  ['with an error', changed(byKnot, -3, 1), key, at, 'the signature of its response is not valid'],
  ['with another MAC', changed(byKnot, -7, 0), key, at, 'the signature of its response is not valid'],
  [
    'signed with another key',
    byKnot,
    { ...key, name: 'l.test' },
    at,
    'its response is signed with another key or algorithm',
  ],
  [
    'signed with another secret',
    byKnot,
    { ...key, secret: Buffer.of(1) },
    at,
    'the signature of its response is not valid',
  ],
  ['with a truncated MAC', shortened, key, at, 'the signature of its response is not valid'],
  ['without a TSIG record', withoutTsig(byKnot, key), key, at, 'its response is not signed'],
])('verify: a response %s', (_, message, signer, now, expected) => {
  const verification = verify(startChain(readMac(byDig)), message, signer, now)
  expect(verification.kind === 'rejected' ? verification.reason : verification.kind).toBe(expected)
})

test('verify rejects the response to another request', () => {
  expect(verify(startChain(readMac(byNsupdate)), byKnot, key, at)).toMatchObject({ kind: 'rejected' })
})

/** Signs a message after the first (RFC 8945 section 5.3.1), without the code under test. */
const later = (priorMac: Buffer, messages: readonly Buffer[]): { message: Buffer; mac: Buffer } => {
  const bare = messages.at(-1) ?? Buffer.alloc(0)
  const timers = Buffer.from(`${at.toString(16).padStart(12, '0')}012c`, 'hex')
  const mac = createHmac('sha256', secret)
    .update(Buffer.concat([Buffer.of(0, 32), priorMac, ...messages, timers]))
    .digest()
  const head = '016b047465737400 00fa 00ff 00000000 003d 0b686d61632d73686132353600'.replaceAll(' ', '')
  const record = [Buffer.from(head, 'hex'), timers, Buffer.of(0, 32), mac, bare.subarray(0, 2), Buffer.alloc(4)]
  return { message: Buffer.concat([changed(bare, 11, 1), ...record]), mac }
}
const plain = (id: number): Buffer => Buffer.concat([Buffer.of(0, id, 0x80, 0), Buffer.alloc(8)])

const verifyAll = (messages: readonly Buffer[]): string => {
  let chain = startChain(readMac(byDig))
  let last = ''
  for (const message of messages) {
    const verification = verify(chain, message, key, at)
    if (verification.kind === 'rejected') return verification.reason
    chain = verification.chain
    last = verification.kind
  }
  return last
}
const many = (count: number): Buffer[] => Array.from({ length: count }, (_, i) => plain(i))
const firstMac = readMac(byKnot)
const second = later(firstMac, [plain(1)])
const third = later(firstMac, many(3))

test.each([
  ['each is signed', [byKnot, second.message, later(second.mac, [plain(2)]).message], 'verified'],
  ['an unsigned message is pending until the next signature', [byKnot, plain(1)], 'pending'],
  [
    'unsigned messages are covered by the next signature',
    [byKnot, ...many(99), later(firstMac, many(100)).message],
    'verified',
  ],
  [
    'an unsigned message is covered by one signature only',
    [byKnot, ...many(2), third.message, later(third.mac, [plain(3)]).message],
    'verified',
  ],
  [
    'one is missing',
    [byKnot, ...many(98), later(firstMac, many(100)).message],
    'the signature of its response is not valid',
  ],
  [
    'two are swapped',
    [byKnot, plain(1), plain(0), later(firstMac, many(3)).message],
    'the signature of its response is not valid',
  ],
  ['one is repeated', [byKnot, second.message, second.message], 'the signature of its response is not valid'],
  ['more than 99 unsigned', [byKnot, ...many(100)], 'too many messages of its response are not signed'],
  ['the first is unsigned', [plain(1), byKnot], 'its response is not signed'],
])('verify: a response of several messages: %s', (_, messages, expected) => {
  expect(verifyAll(messages)).toBe(expected)
})

test.each([
  ['truncated', changed(byKnot, -39, 33)],
  ['not the last record', Buffer.concat([changed(byKnot, 11, 3), Buffer.from('0000290000000000000000', 'hex')])],
  ['duplicated', Buffer.concat([changed(byKnot, 11, 3), byKnot.subarray(byKnot.length - toTsigSize(key))])],
])('a TSIG record that is %s is a format error', (_, message) => {
  expect(() => verify(startChain(firstMac), message, key, at)).toThrow(FormatError)
})

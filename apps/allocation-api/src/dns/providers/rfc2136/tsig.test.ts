import { createHmac } from 'node:crypto'
import { expect, test } from 'vitest'
import { FormatError } from '../../wire/format-error.ts'
import { sign, startChain, type TsigKey, tsigSize, verify } from './tsig.ts'

const secret = Buffer.from('c2VjcmV0c2VjcmV0c2VjcmV0c2VjcmV0', 'base64')
const key: TsigKey = { name: 'k.test', secret }

/** An update as nsupdate 9.18 signed it, and a transfer by dig 9.18 from Knot 3.2: none of our own code is in them. */
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

/** The message without its TSIG record, which is the last thing in it; `size` as tsigSize gives it. */
const bareOf = (message: Buffer, signer: TsigKey): Buffer => {
  const bare = Buffer.from(message.subarray(0, message.length - tsigSize(signer)))
  bare.writeUInt16BE(bare.readUInt16BE(10) - 1, 10)
  return bare
}
const signedAtOf = (message: Buffer): number => message.readUIntBE(message.length - 48, 6)
const macIn = (message: Buffer): Buffer => message.subarray(message.length - 38, message.length - 6)

test.each([
  ['nsupdate', byNsupdate, { name: 'key.test', secret }],
  ['dig', byDig, key],
])('a message signed at the same time is octet for octet that of %s', (_, message, signer) => {
  const signed = sign(bareOf(message, signer), signer, signedAtOf(message))
  expect(signed.message.toString('hex')).toBe(message.toString('hex'))
  expect(signed.mac).toEqual(macIn(message))
})

const changed = (message: Buffer, at: number, to: number): Buffer => {
  const copy = Buffer.from(message)
  copy[at < 0 ? copy.length + at : at] = to
  return copy
}
const at = signedAtOf(byKnot)
/** Its signature cut to 16 octets, as RFC 8945 section 5.2.2.1 allows it: rightly, but too short for us. */
const shortened = Buffer.concat([
  changed(changed(byKnot, -62, 0x2d), -39, 16).subarray(0, byKnot.length - 22),
  byKnot.subarray(-6),
])

test.each([
  ['as it came', byKnot, key, at, 'verified'],
  ['300 s later', byKnot, key, at + 300, 'verified'],
  ['under another id, which a forwarder gives it', changed(byKnot, 0, 1), key, at, 'verified'],
  ['301 s later', byKnot, key, at + 301, "the clocks differ: the server's is 301 s behind (BADTIME)"],
  ['an hour before', byKnot, key, at - 3_600, "the clocks differ: the server's is 3600 s ahead (BADTIME)"],
  ['a record is another', changed(byKnot, 60, 0xff), key, at, 'its answer is signed wrongly'],
  ['another time', changed(byKnot, -43, 0), key, at, 'its answer is signed wrongly'],
  ['another fudge', changed(byKnot, -42, 9), key, at, 'its answer is signed wrongly'],
  ['an error', changed(byKnot, -3, 1), key, at, 'its answer is signed wrongly'],
  ['another signature', changed(byKnot, -7, 0), key, at, 'its answer is signed wrongly'],
  ['of another key', byKnot, { ...key, name: 'l.test' }, at, 'its answer is signed with another key or algorithm'],
  ['another secret', byKnot, { ...key, secret: Buffer.of(1) }, at, 'its answer is signed wrongly'],
  ['half a signature', shortened, key, at, 'its answer is signed wrongly'],
  ['no signature', bareOf(byKnot, key), key, at, 'its answer is not signed'],
])('an answer, %s', (_, message, signer, now, expected) => {
  const verdict = verify(startChain(macIn(byDig)), message, signer, now)
  expect(verdict.kind === 'rejected' ? verdict.reason : verdict.kind).toBe(expected)
})

test('the answer to another request is not taken', () => {
  expect(verify(startChain(macIn(byNsupdate)), byKnot, key, at)).toMatchObject({ kind: 'rejected' })
})

/** RFC 8945 section 5.3.1, said again without the code under test: what signs a message behind the first. */
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

const follow = (messages: readonly Buffer[]): string => {
  let chain = startChain(macIn(byDig))
  let last = ''
  for (const message of messages) {
    const verdict = verify(chain, message, key, at)
    if (verdict.kind === 'rejected') return verdict.reason
    chain = verdict.chain
    last = verdict.kind
  }
  return last
}
const many = (count: number): Buffer[] => Array.from({ length: count }, (_, i) => plain(i))
const firstMac = macIn(byKnot)
const second = later(firstMac, [plain(1)])
const third = later(firstMac, many(3))

test.each([
  ['each signed', [byKnot, second.message, later(second.mac, [plain(2)]).message], 'verified'],
  ['an unsigned one awaits the next signature', [byKnot, plain(1)], 'pending'],
  ['unsigned ones are covered by the next', [byKnot, ...many(99), later(firstMac, many(100)).message], 'verified'],
  ['and by that one only', [byKnot, ...many(2), third.message, later(third.mac, [plain(3)]).message], 'verified'],
  ['one left out', [byKnot, ...many(98), later(firstMac, many(100)).message], 'its answer is signed wrongly'],
  ['in another order', [byKnot, plain(1), plain(0), later(firstMac, many(3)).message], 'its answer is signed wrongly'],
  ['one comes twice', [byKnot, second.message, second.message], 'its answer is signed wrongly'],
  ['more than 99 unsigned', [byKnot, ...many(100)], 'too many messages of its answer are not signed'],
  ['the first is unsigned', [plain(1), byKnot], 'its answer is not signed'],
])('an answer of several messages: %s', (_, messages, expected) => {
  expect(follow(messages)).toBe(expected)
})

test.each([
  ['cut', changed(byKnot, -39, 33)],
  ['not last', Buffer.concat([changed(byKnot, 11, 3), Buffer.from('0000290000000000000000', 'hex')])],
  ['there twice', Buffer.concat([changed(byKnot, 11, 3), byKnot.subarray(byKnot.length - tsigSize(key))])],
])('a TSIG record that is %s is no message', (_, message) => {
  expect(() => verify(startChain(firstMac), message, key, at)).toThrow(FormatError)
})

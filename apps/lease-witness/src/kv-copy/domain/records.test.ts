import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { LeaseState } from '../../lease/lease.ts'
import {
  type FoundRecord,
  findRecord,
  findUnknownWrites,
  highestGeneration,
  isForeign,
  isOfSlot,
  type KvRecord,
  parseLeaseRecord,
  parseMark,
  recover,
  toCopiedLease,
  toCopyValue,
  toTakenRecords,
} from './records.ts'

const ACQUIRED = Date.parse('2026-01-31T12:00:00Z')
const EXPIRES = ACQUIRED + 30_000
const NOW = ACQUIRED + 20_000

const shape = {
  holder: 'a',
  acquiredAt: '2026-01-31T12:00:00.000Z',
  expiresAt: '2026-01-31T12:00:30.000Z',
  generation: 7,
}
const lease: LeaseState = {
  kind: 'held',
  holder: 'a',
  acquiredAt: ACQUIRED,
  writtenAt: ACQUIRED,
  expiresAt: EXPIRES,
  generation: 7,
}

const released = (generation: number): LeaseState => ({ kind: 'released', acquiredAt: 0, writtenAt: 0, generation })

describe('a record of an older deployment', () => {
  test.each<readonly [rule: string, value: unknown, parsed: LeaseState | undefined]>([
    ['held', shape, lease],
    [
      'times without milliseconds',
      { ...shape, acquiredAt: '2026-01-31T12:00:00Z', expiresAt: '2026-01-31T12:00:30Z' },
      lease,
    ],
    ['times with an offset', { ...shape, acquiredAt: '2026-01-31T13:00:00+01:00' }, lease],
    ['times finer than milliseconds', { ...shape, acquiredAt: '2026-01-31T12:00:00.000123Z' }, lease],
    ['unknown fields', { ...shape, ttlSeconds: 30, slot: 'x' }, lease],
    ['released', { holder: '', acquiredAt: '', expiresAt: '', generation: 7 }, released(7)],
    ['generation 0', { generation: 0 }, released(0)],
    ['the maximum generation', { generation: 2 ** 52 }, released(2 ** 52)],
    ['a larger generation', { ...shape, generation: 2 ** 52 + 1 }, undefined],
    ['no generation', { ...shape, generation: undefined }, undefined],
    ['a negative generation', { ...shape, generation: -1 }, undefined],
    ['a fractional generation', { ...shape, generation: 7.5 }, undefined],
    ['a generation as a string', { ...shape, generation: '7' }, undefined],
    ['a holder that is a number', { ...shape, holder: 5 }, undefined],
    ['held without expiresAt', { ...shape, expiresAt: undefined }, undefined],
    ['held with an expiresAt that is not a time', { ...shape, expiresAt: 'soon' }, undefined],
    ['held without acquiredAt', { ...shape, acquiredAt: undefined }, undefined],
    ['null', null, undefined],
  ])('%s', (_, value, parsed) => {
    expect(parseLeaseRecord(JSON.stringify(value))).toEqual(parsed)
  })

  test.each(['', '{', 'region-a', '{"generation":7', '\u0000'])('%j is not a lease', value => {
    expect(parseLeaseRecord(value)).toBeUndefined()
  })

  test('parsing any JSON does not throw, and gives a safe generation', () => {
    fc.assert(
      fc.property(fc.json(), value => {
        const parsed = parseLeaseRecord(value)
        if (parsed) expect(Number.isSafeInteger(parsed.generation)).toBe(true)
      }),
    )
  })
})

describe('our own copies', () => {
  test.each<readonly [metadata: unknown, isOwn: boolean]>([
    [{ renewedAt: 1 }, true],
    [{ renewedAt: 0, lease: shape }, true],
    [null, false],
    [{}, false],
    [{ renewedAt: '1' }, false],
  ])('are recognized by their metadata: %j', (metadata, isOwn) => {
    expect(parseMark(metadata) !== undefined).toBe(isOwn)
  })

  test('have the fields that are known and valid', () => {
    const mark = { renewedAt: 1, copiedAt: 2, object: 'o', ahead: 3, extendedMs: 4, isLegacyKey: true }
    expect(parseMark({ ...mark, lease: shape })).toEqual(mark)
    expect(parseMark({ renewedAt: 1, copiedAt: '2', object: 3, ahead: null })).toEqual({ renewedAt: 1 })
  })
})

const legacy = (key: string, value: unknown): KvRecord => ({
  key,
  value: typeof value === 'string' ? value : JSON.stringify(value),
  metadata: null,
})
const own = (key: string, value: unknown, renewedAt = ACQUIRED): KvRecord => ({
  ...legacy(key, value),
  metadata: { renewedAt },
})
const nothing: FoundRecord = { kind: 'nothing' }
const foreign = (generation: number): FoundRecord => ({
  kind: 'foreign',
  lease: { ...lease, generation },
})

describe('what Workers KV has for a slot', () => {
  const at7 = legacy('lease:a/b', shape)
  const at9 = legacy('lease:a%2Fb', { ...shape, generation: 9 })
  const at5 = legacy('lease:a%2fb', { ...shape, generation: 5 })
  const junk = legacy('lease:a%2Fb', 'junk')
  const copy: FoundRecord = { kind: 'copy', lease, mark: { renewedAt: ACQUIRED } }

  test.each<readonly [rule: string, records: KvRecord[], expected: FoundRecord]>([
    ['no records', [], nothing],
    ['a record under the decoded key', [at7], foreign(7)],
    ['a record under a legacy key', [at9], foreign(9)],
    ['several: the highest generation is under a legacy key', [at7, at9, at5], foreign(9)],
    ['several: the highest generation is under the decoded key', [at7, at5], foreign(7)],
    ['an invalid record', [legacy('lease:a/b', 'junk')], { kind: 'invalid', key: 'lease:a/b' }],
    ['an invalid record in addition to a valid one', [at7, junk], { kind: 'invalid', key: 'lease:a%2Fb' }],
    ['our own copy, invalid', [own('lease:a/b', 'junk')], { kind: 'invalid', key: 'lease:a/b' }],
    ['our own copy, and an older record', [own('lease:a/b', shape), at5], copy],
    ['a record that continues from our own copy', [own('lease:a/b', shape), at9], foreign(9)],
    ['our own copy under a legacy key', [own('lease:a%2Fb', shape)], copy],
  ])('%s', (_, records, expected) => {
    expect(findRecord(records)).toEqual(expected)
  })

  test.each<readonly [key: string, metadata: object | null, slot: string, isOfSlot: boolean]>([
    ['lease:a/b', null, 'a/b', true],
    ['lease:a/b', { renewedAt: 1 }, 'a/b', true],
    ['lease:a%2Fb', null, 'a/b', true],
    ['lease:a%2Fb', { renewedAt: 1 }, 'a/b', false],
    ['lease:a%2Fb', { renewedAt: 1, isLegacyKey: true }, 'a/b', true],
    ['lease:a%2Fb', null, 'a%2Fb', true],
    ['lease:a%2Fb', { renewedAt: 1 }, 'a%2Fb', true],
    ['lease:a%2Fb', { renewedAt: 1, isLegacyKey: true }, 'a%2Fb', false],
  ])('the record %s with the metadata %j is of the slot %s: %s', (key, metadata, slot, expected) => {
    expect(isOfSlot({ key, metadata }, slot)).toBe(expected)
  })

  test('a system continues from the highest generation of any record', () => {
    expect(highestGeneration([])).toBe(0)
    const records = [own('lease:a/b', shape), at9, junk]
    expect(highestGeneration(records)).toBe(9)
    expect(highestGeneration(records, ACQUIRED + 3)).toBe(7 + 2 ** 20 + 30)
  })

  test('the records that were taken over always have the decoded key', () => {
    expect(toTakenRecords('a/b', [at9])).toEqual({ 'lease:a/b': '', 'lease:a%2Fb': at9.value })
    expect(toTakenRecords('a/b', [at7], { 'lease:a/b': 'x' })).toEqual({ 'lease:a/b': at7.value })
  })

  test('the time of the last write of a record without it is at most the longest TTL before its expiry', () => {
    const parsed = parseLeaseRecord(JSON.stringify({ ...shape, expiresAt: '2026-02-28T12:00:30.000Z' }))
    expect(parsed?.writtenAt).toBe(Date.parse('2026-02-27T12:00:30.000Z'))
  })
})

describe('a slot whose object was lost', () => {
  const JUMP = 2 ** 20
  const copy = (value: unknown, mark: object): FoundRecord & { kind: 'copy' } => {
    const found = findRecord([{ ...legacy('lease:a', value), metadata: mark }])
    if (found.kind !== 'copy') throw new Error(found.kind)
    return found
  }

  test('the generation jumps by 2^20 and ten for each millisecond since the copy', () => {
    const found = copy(shape, { renewedAt: ACQUIRED, copiedAt: NOW - 60_000 })
    expect(recover(found, NOW).generation).toBe(7 + JUMP + 600_000)
  })

  test('a copy of version 1.0 is as old as its last renewal', () => {
    expect(recover(copy(shape, { renewedAt: NOW - 1_000 }), NOW).generation).toBe(7 + JUMP + 10_000)
  })

  test('a copy from the future, by a clock that was ahead: 2^20', () => {
    expect(recover(copy(shape, { renewedAt: NOW, copiedAt: NOW + 60_000 }), NOW).generation).toBe(7 + JUMP)
  })

  test.each([
    ['the whole TTL', ACQUIRED, 30_000],
    ['that of the last renewal', ACQUIRED + 25_000, 5_000],
  ])('the holder gets its whole TTL again: %s', (_, renewedAt, ttlMs) => {
    expect(recover(copy(shape, { renewedAt, copiedAt: NOW }), NOW)).toEqual({
      ...lease,
      generation: 7 + JUMP,
      writtenAt: NOW,
      expiresAt: NOW + ttlMs,
    })
  })

  test('an expiry that is later in the copy does not make the TTL longer', () => {
    const mark = { renewedAt: ACQUIRED, copiedAt: NOW, extendedMs: 600_000, ahead: 5 }
    const wire = { ...shape, generation: 7 }
    const value = toCopyValue(wire, mark)
    expect(value).toEqual({ ...shape, expiresAt: '2026-01-31T12:10:30.000Z', generation: 12 })
    expect(toCopiedLease(value, mark)).toEqual(wire)
    expect(recover(copy(value, mark), NOW)).toMatchObject({ writtenAt: NOW, expiresAt: NOW + 30_000 })
  })

  test('a released slot stays released', () => {
    const record = { holder: '', acquiredAt: '', expiresAt: '', generation: 7 }
    expect(recover(copy(record, { renewedAt: 0, copiedAt: NOW }), NOW)).toEqual({
      ...released(7 + JUMP),
      writtenAt: NOW,
    })
  })
})

describe('writes that an object does not know', () => {
  const JUMP = 2 ** 20
  const record = (metadata: object | null): KvRecord => ({ ...legacy('lease:a', shape), metadata })
  const ours = { renewedAt: ACQUIRED, copiedAt: NOW - 10, object: 'ours' }

  test.each<readonly [rule: string, metadata: object | null, generation: number, expected: object | undefined]>([
    ['those of another system', null, 9, { event: 'foreign-writer', from: 'a', generation: 9 + JUMP }],
    ['its own: the copy is later', ours, 6, { event: 'jumped', from: 'a', generation: 7 + JUMP + 100 }],
    ['none: the copy is current', ours, 7, undefined],
    ['none: the copy is earlier', ours, 8, undefined],
    ['none: the value is ahead', { ...ours, ahead: 1 }, 6, undefined],
    ['none: a copy of version 1.0', { renewedAt: ACQUIRED }, 6, undefined],
  ])('%s', (_, metadata, generation, expected) => {
    expect(findUnknownWrites(record(metadata), 'ours', { lease: { ...lease, generation } }, NOW)).toEqual(expected)
  })
})

describe('a record that another system wrote over our copy', () => {
  const OBJECT = 'ours'
  const record = (metadata: unknown, value = 'x'): KvRecord => ({ key: 'lease:a', value, metadata })

  test.each<readonly [rule: string, record: KvRecord, takenOver: string | undefined, isForeign: boolean]>([
    ['without metadata', record(null), undefined, true],
    ['without metadata, after another one was taken over', record(null, 'y'), 'x', true],
    ['the one that was taken over, read again', record(null), 'x', false],
    ['our own copy', record({ renewedAt: 1, object: OBJECT }), undefined, false],
    ['our own copy, by version 1.0', record({ renewedAt: 1 }), undefined, false],
    ['the copy of another object', record({ renewedAt: 1, object: 'other' }), undefined, true],
    ['the copy of another object, taken over', record({ renewedAt: 1, object: 'other' }), 'x', false],
  ])('%s', (_, found, takenOver, expected) => {
    expect(isForeign(found, OBJECT, takenOver === undefined ? {} : { 'lease:a': takenOver })).toBe(expected)
  })
})

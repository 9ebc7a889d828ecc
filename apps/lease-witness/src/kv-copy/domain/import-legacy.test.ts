import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { LeaseState } from '../../lease/lease.ts'
import {
  importLegacy,
  isOwnCopy,
  type KvRecord,
  type LegacyImport,
  parseLeaseRecord,
  RECOVERY_GENERATION_GAP,
} from './import-legacy.ts'

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
    ['only a generation', { generation: 7 }, released(7)],
    ['generation 0', { generation: 0 }, released(0)],
    ['the maximum generation', { generation: 2 ** 52 }, released(2 ** 52)],
    ['a larger generation', { ...shape, generation: 2 ** 52 + 1 }, undefined],
    ['no generation', { ...shape, generation: undefined }, undefined],
    ['a negative generation', { ...shape, generation: -1 }, undefined],
    ['a fractional generation', { ...shape, generation: 7.5 }, undefined],
    ['a generation as a string', { ...shape, generation: '7' }, undefined],
    ['a generation of null', { ...shape, generation: null }, undefined],
    ['a holder that is a number', { ...shape, holder: 5 }, undefined],
    ['a holder of null', { ...shape, holder: null }, undefined],
    ['held without expiresAt', { ...shape, expiresAt: undefined }, undefined],
    ['held with an empty expiresAt', { ...shape, expiresAt: '' }, undefined],
    ['held with an expiresAt that is not a time', { ...shape, expiresAt: 'soon' }, undefined],
    ['held with a numeric expiresAt', { ...shape, expiresAt: EXPIRES }, undefined],
    ['held without acquiredAt', { ...shape, acquiredAt: undefined }, undefined],
    ['null', null, undefined],
    ['a number', 7, undefined],
    ['a string', 'a', undefined],
    ['an array', [shape], undefined],
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
    [undefined, false],
    [{}, false],
    ['renewedAt', false],
    [{ renewedAt: '1' }, false],
    [{ savedAt: 1 }, false],
  ])('are recognized by their metadata: %j', (metadata, isOwn) => {
    expect(isOwnCopy({ metadata })).toBe(isOwn)
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
const nothing: LegacyImport = { kind: 'nothing' }
const imported = (current: LeaseState): LegacyImport => ({ kind: 'imported', lease: current })

describe('the import of a slot without stored state', () => {
  const at7 = legacy('lease:a/b', shape)
  const at9 = legacy('lease:a%2Fb', { ...shape, generation: 9 })
  const at5 = legacy('lease:a%2fb', { ...shape, generation: 5 })
  const junk = legacy('lease:a%2Fb', 'junk')

  test.each<readonly [rule: string, decoded: KvRecord | undefined, encoded: KvRecord[], expected: LegacyImport]>([
    ['no records', undefined, [], nothing],
    ['a record under the decoded key', at7, [], imported(lease)],
    ['a record under a legacy key', undefined, [at9], imported({ ...lease, generation: 9 })],
    ['several: the highest generation is under a legacy key', at7, [at9, at5], imported({ ...lease, generation: 9 })],
    ['several: the highest generation is under the decoded key', at7, [at5], imported(lease)],
    ['several legacy keys', undefined, [at5, at9], imported({ ...lease, generation: 9 })],
    ['an invalid record', legacy('lease:a/b', 'junk'), [], { kind: 'invalid', key: 'lease:a/b' }],
    ['an invalid record in addition to a valid one', at7, [junk], { kind: 'invalid', key: 'lease:a%2Fb' }],
    ["another slot's own copy under a legacy key", undefined, [own('lease:a%2Fb', shape)], nothing],
    ["another slot's own copy, invalid", undefined, [own('lease:a%2Fb', 'junk')], nothing],
    [
      "another slot's own copy in addition to a record",
      at7,
      [own('lease:a%2Fb', { ...shape, generation: 99 })],
      imported(lease),
    ],
    ['our own copy, invalid', own('lease:a/b', 'junk'), [], { kind: 'invalid', key: 'lease:a/b' }],
  ])('%s', (_, decoded, encoded, expected) => {
    expect(importLegacy(decoded, encoded, NOW)).toEqual(expected)
  })

  test('an expired record is imported unchanged', () => {
    expect(importLegacy(at7, [], EXPIRES + 5)).toEqual(imported(lease))
  })
})

describe('a slot whose object was lost', () => {
  const generation = 7 + RECOVERY_GENERATION_GAP

  test('the gap is 2^20', () => {
    expect(RECOVERY_GENERATION_GAP).toBe(1_048_576)
  })

  test('the generation skips the gap, and the holder gets the full TTL again', () => {
    expect(importLegacy(own('lease:a', shape), [], NOW)).toEqual(
      imported({ ...lease, generation, writtenAt: ACQUIRED, expiresAt: NOW + 30_000 }),
    )
  })

  test('the TTL is that of the last renewal', () => {
    expect(importLegacy(own('lease:a', shape, ACQUIRED + 25_000), [], NOW + 60_000)).toEqual(
      imported({ ...lease, generation, writtenAt: ACQUIRED + 25_000, expiresAt: NOW + 65_000 }),
    )
  })

  test('no lease is shortened', () => {
    expect(importLegacy(own('lease:a', shape), [], ACQUIRED - 5_000)).toEqual(imported({ ...lease, generation }))
  })

  test('a released slot stays released', () => {
    const record = { holder: '', acquiredAt: '', expiresAt: '', generation: 7 }
    expect(importLegacy(own('lease:a', record, 0), [], NOW)).toEqual(imported(released(generation)))
  })

  test('legacy records are ignored if our own copy exists', () => {
    const before = legacy('lease:a%2Fb', { ...shape, generation: 9 })
    const found = importLegacy(own('lease:a/b', shape), [before, legacy('lease:a%2fb', 'junk')], NOW)
    expect(found).toMatchObject({ kind: 'imported', lease: { generation } })
  })
})

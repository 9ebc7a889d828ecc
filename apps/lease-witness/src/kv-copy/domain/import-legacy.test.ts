import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { LeaseState } from '../../lease/lease.ts'
import {
  importLegacy,
  isOwnCopy,
  type KvRecord,
  type LegacyImport,
  parseRecord,
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
  renewedAt: ACQUIRED,
  expiresAt: EXPIRES,
  generation: 7,
}

describe('a record of an older deployment', () => {
  test.each<readonly [rule: string, value: unknown, reads: LeaseState | undefined]>([
    ['held', shape, lease],
    [
      'times without milliseconds',
      { ...shape, acquiredAt: '2026-01-31T12:00:00Z', expiresAt: '2026-01-31T12:00:30Z' },
      lease,
    ],
    ['times with an offset', { ...shape, acquiredAt: '2026-01-31T13:00:00+01:00' }, lease],
    ['times finer than milliseconds', { ...shape, acquiredAt: '2026-01-31T12:00:00.000123Z' }, lease],
    ['fields that we do not know', { ...shape, ttlSeconds: 30, slot: 'x' }, lease],
    ['released', { holder: '', acquiredAt: '', expiresAt: '', generation: 7 }, { kind: 'released', generation: 7 }],
    ['a generation alone', { generation: 7 }, { kind: 'released', generation: 7 }],
    ['generation 0', { generation: 0 }, { kind: 'released', generation: 0 }],
    ['the greatest generation', { generation: 2 ** 52 }, { kind: 'released', generation: 2 ** 52 }],
    ['a generation beyond it', { ...shape, generation: 2 ** 52 + 1 }, undefined],
    ['no generation', { ...shape, generation: undefined }, undefined],
    ['a generation below 0', { ...shape, generation: -1 }, undefined],
    ['half a generation', { ...shape, generation: 7.5 }, undefined],
    ['a generation as text', { ...shape, generation: '7' }, undefined],
    ['a generation of null', { ...shape, generation: null }, undefined],
    ['a holder that is a number', { ...shape, holder: 5 }, undefined],
    ['a holder of null', { ...shape, holder: null }, undefined],
    ['held without expiresAt', { ...shape, expiresAt: undefined }, undefined],
    ['held with an empty expiresAt', { ...shape, expiresAt: '' }, undefined],
    ['held with an expiresAt that is no time', { ...shape, expiresAt: 'soon' }, undefined],
    ['held with an expiresAt in numbers', { ...shape, expiresAt: EXPIRES }, undefined],
    ['held without acquiredAt', { ...shape, acquiredAt: undefined }, undefined],
    ['null', null, undefined],
    ['a number', 7, undefined],
    ['a text', 'a', undefined],
    ['an array', [shape], undefined],
  ])('%s', (_, value, reads) => {
    expect(parseRecord(JSON.stringify(value))).toEqual(reads)
  })

  test.each(['', '{', 'region-a', '{"generation":7', '\u0000'])('%j is none', value => {
    expect(parseRecord(value)).toBeUndefined()
  })

  test('whatever stands there, reading it does not throw, and what it gives can be shown', () => {
    fc.assert(
      fc.property(fc.json(), value => {
        const read = parseRecord(value)
        if (read) expect(Number.isSafeInteger(read.generation)).toBe(true)
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
  ])('are told by their metadata: %j', (metadata, isOwn) => {
    expect(isOwnCopy({ metadata })).toBe(isOwn)
  })
})

const older = (key: string, value: unknown): KvRecord => ({
  key,
  value: typeof value === 'string' ? value : JSON.stringify(value),
  metadata: null,
})
const own = (key: string, value: unknown, renewedAt = ACQUIRED): KvRecord => ({
  ...older(key, value),
  metadata: { renewedAt },
})
const nothing: LegacyImport = { kind: 'nothing' }
const adopted = (current: LeaseState): LegacyImport => ({ kind: 'imported', lease: current })

describe('what a slot without state takes over', () => {
  const at7 = older('lease:a/b', shape)
  const at9 = older('lease:a%2Fb', { ...shape, generation: 9 })
  const at5 = older('lease:a%2fb', { ...shape, generation: 5 })
  const junk = older('lease:a%2Fb', 'junk')

  test.each<readonly [rule: string, decoded: KvRecord | undefined, undecoded: KvRecord[], adoption: LegacyImport]>([
    ['nothing there', undefined, [], nothing],
    ['a record under the decoded key', at7, [], adopted(lease)],
    ['a record under an older spelling', undefined, [at9], adopted({ ...lease, generation: 9 })],
    ['several: the highest generation, in an older spelling', at7, [at9, at5], adopted({ ...lease, generation: 9 })],
    ['several: the highest generation, under the decoded key', at7, [at5], adopted(lease)],
    ['several older spellings', undefined, [at5, at9], adopted({ ...lease, generation: 9 })],
    ['a record that is no lease', older('lease:a/b', 'junk'), [], { kind: 'invalid', key: 'lease:a/b' }],
    ['one that is no lease beside a good one', at7, [junk], { kind: 'invalid', key: 'lease:a%2Fb' }],
    ["another slot's own copy under an older spelling", undefined, [own('lease:a%2Fb', shape)], nothing],
    ["another slot's own copy, unreadable", undefined, [own('lease:a%2Fb', 'junk')], nothing],
    [
      "another slot's own copy beside a record",
      at7,
      [own('lease:a%2Fb', { ...shape, generation: 99 })],
      adopted(lease),
    ],
    ['our own copy that is no lease', own('lease:a/b', 'junk'), [], { kind: 'invalid', key: 'lease:a/b' }],
  ])('%s', (_, decoded, undecoded, adoption) => {
    expect(importLegacy(decoded, undecoded, NOW)).toEqual(adoption)
  })

  test('an expired record is taken over as it is', () => {
    expect(importLegacy(at7, [], EXPIRES + 5)).toEqual(adopted(lease))
  })
})

describe('a slot whose object was lost', () => {
  const generation = 7 + RECOVERY_GENERATION_GAP

  test('the leap is a million', () => {
    expect(RECOVERY_GENERATION_GAP).toBe(1_048_576)
  })

  test('the generation leaps, and the holder has the time of a whole lease again', () => {
    expect(importLegacy(own('lease:a', shape), [], NOW)).toEqual(
      adopted({ ...lease, generation, renewedAt: ACQUIRED, expiresAt: NOW + 30_000 }),
    )
  })

  test('a lease that was renewed late has the time that the last renewal gave it', () => {
    expect(importLegacy(own('lease:a', shape, ACQUIRED + 25_000), [], NOW + 60_000)).toEqual(
      adopted({ ...lease, generation, renewedAt: ACQUIRED + 25_000, expiresAt: NOW + 65_000 }),
    )
  })

  test('no lease is shortened by it', () => {
    expect(importLegacy(own('lease:a', shape), [], ACQUIRED - 5_000)).toEqual(adopted({ ...lease, generation }))
  })

  test('a released slot stays released', () => {
    const released = { holder: '', acquiredAt: '', expiresAt: '', generation: 7 }
    expect(importLegacy(own('lease:a', released, 0), [], NOW)).toEqual(adopted({ kind: 'released', generation }))
  })

  test('its own copy counts, and no older spelling beside it', () => {
    const before = older('lease:a%2Fb', { ...shape, generation: 9 })
    const found = importLegacy(own('lease:a/b', shape), [before, older('lease:a%2fb', 'junk')], NOW)
    expect(found).toMatchObject({ kind: 'imported', lease: { generation } })
  })
})

import { describe, expect, test } from 'vitest'
import { backoffMs } from './backoff.ts'
import { isDecided, toDnsState } from './status.ts'

describe('the backoff', () => {
  test.each([
    [1, 500],
    [2, 1_000],
    [3, 2_000],
    [6, 16_000],
    [7, 30_000],
    [1_000_000, 30_000],
  ])('attempt %i: %i ms with a jitter of a fifth', (attempts, middle) => {
    expect(backoffMs(attempts, 0)).toBeCloseTo(middle * 0.8)
    expect(backoffMs(attempts, 0.5)).toBeCloseTo(middle)
    expect(backoffMs(attempts, 1)).toBeCloseTo(middle * 1.2)
  })
})

describe('the status of the records', () => {
  test.each([
    ['no row: nothing desired or left', null, 'published'],
    ['not applied yet', { version: 2, appliedVersion: 1, lastError: null }, 'pending'],
    ['applied', { version: 2, appliedVersion: 2, lastError: null }, 'published'],
    ['failed since', { version: 2, appliedVersion: 1, lastError: 'down' }, 'failing'],
  ] as const)('%s', (_, progress, status) => {
    expect(toDnsState(progress).status).toBe(status)
  })

  test('a published name of which the provider keeps records of an earlier holder has a detail', () => {
    const status = { version: 2, appliedVersion: 2, lastError: 'x.acme TXT' }
    expect(toDnsState(status)).toEqual({ status: 'published', detail: 'x.acme TXT' })
  })

  test('a failing name has a detail', () => {
    expect(toDnsState({ version: 1, appliedVersion: 0, lastError: 'down' })).toEqual({
      status: 'failing',
      detail: 'down',
    })
  })

  test.each([
    ['gone', null, false, true],
    ['older version applied', { version: 3, appliedVersion: 2, lastError: null }, false, false],
    ['own version applied', { version: 3, appliedVersion: 3, lastError: null }, false, true],
    ['newer version applied', { version: 4, appliedVersion: 4, lastError: null }, false, true],
    ['failed', { version: 3, appliedVersion: 2, lastError: 'down' }, false, true],
    ['failed, and repeated in time', { version: 3, appliedVersion: 2, lastError: 'down' }, true, false],
    ['own version applied after a failure', { version: 3, appliedVersion: 3, lastError: null }, true, true],
  ] as const)('a caller that waits for version 3: %s', (_, status, isTransient, decided) => {
    expect(isDecided(status, 3, isTransient)).toBe(decided)
  })
})

import { expect, test } from 'vitest'
import { toLeaseRow, toLeaseTone } from './lease.ts'

const held = {
  slot: 's',
  holder: 'region-a',
  acquiredAt: '2026-01-31T12:00:00.000Z',
  expiresAt: '2026-01-31T12:00:30.000Z',
  generation: 7,
  waiters: 2,
}

test('the end of a lease counts from the receipt, not from the clock of the witness', () =>
  expect(toLeaseRow({ ...held, remainingMs: 20_000 }, 1_000)).toMatchObject({ endsAt: 21_000, waiters: 2 }))

test('a lease has the value of its holder, if there is one', () => {
  expect(toLeaseRow({ ...held, value: 'https://10.0.0.7' }, 0)).toMatchObject({ value: 'https://10.0.0.7' })
  expect(toLeaseRow(held, 0)).not.toHaveProperty('value')
})

test.each([
  [{ ...held, remainingMs: 20_000 }, 'held'],
  [{ ...held, holder: '', acquiredAt: '', expiresAt: '' }, 'free'],
  [{ slot: 's', error: 'overloaded' as const }, 'overloaded'],
])('the state of %o', (status, text) => expect(toLeaseTone(toLeaseRow(status, 0)).text).toBe(text))

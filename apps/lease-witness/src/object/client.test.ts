import { expect, test } from 'vitest'
import { toUnavailable } from './client.ts'

const errorWith = (flags: object): Error => Object.assign(new Error('x'), flags)
const bugWith = (flags: object): Error => Object.assign(new TypeError('x is not a function'), flags)

test.each<readonly [rule: string, error: unknown, kind: 'overloaded' | 'lease-unavailable' | undefined]>([
  ['overloaded', errorWith({ overloaded: true }), 'overloaded'],
  ['overloaded, with other flags', errorWith({ overloaded: true, retryable: true, remote: true }), 'overloaded'],
  ['overloaded, as another error', bugWith({ overloaded: true, remote: true }), 'overloaded'],
  ['retryable', errorWith({ retryable: true, remote: true }), 'lease-unavailable'],
  ['retryable, as another error', bugWith({ retryable: true, remote: true }), 'lease-unavailable'],
  ['the object was reset', errorWith({ durableObjectReset: true, remote: true }), 'lease-unavailable'],
  ['the connection to it was lost', errorWith({}), 'lease-unavailable'],
  ['a limit or a quota, reported inside the object', errorWith({ remote: true }), 'lease-unavailable'],
  ['its own code failed', bugWith({ remote: true }), undefined],
  ['its own code failed, and no other flag is set', bugWith({ remote: true, retryable: false }), undefined],
  ['flags other than true are ignored', bugWith({ remote: true, overloaded: 'yes', retryable: 1 }), undefined],
  ['undefined', undefined, 'lease-unavailable'],
  ['null', null, 'lease-unavailable'],
  ['a string', 'overloaded', 'lease-unavailable'],
])('a failed call to an object: %s', (_, error, kind) => {
  expect(toUnavailable(error)).toEqual(kind && { kind, reason: String(error) })
})

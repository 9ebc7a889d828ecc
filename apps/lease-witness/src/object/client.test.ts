import { expect, test } from 'vitest'
import { toUnavailable } from './client.ts'

const fault = (flags: object): Error => Object.assign(new Error('x'), flags)

test.each<readonly [rule: string, error: unknown, kind: 'overloaded' | 'lease-unavailable' | undefined]>([
  ['overloaded', fault({ overloaded: true }), 'overloaded'],
  ['overloaded, whatever else is said', fault({ overloaded: true, retryable: true, remote: true }), 'overloaded'],
  ['may be sent again', fault({ retryable: true, remote: true }), 'lease-unavailable'],
  ['the object was reset', fault({ durableObjectReset: true, remote: true }), 'lease-unavailable'],
  ['the connection to it was lost', fault({}), 'lease-unavailable'],
  ['its own code threw', fault({ remote: true }), undefined],
  [
    'its own code threw, and no flag is raised',
    fault({ remote: true, retryable: false, overloaded: false }),
    undefined,
  ],
  ['a flag that is not true is none', fault({ remote: true, overloaded: 'yes', retryable: 1 }), undefined],
  ['no error at all', undefined, 'lease-unavailable'],
  ['null', null, 'lease-unavailable'],
  ['a text', 'overloaded', 'lease-unavailable'],
])('a failed call to an object: %s', (_, error, kind) => {
  expect(toUnavailable(error)).toEqual(kind && { kind })
})

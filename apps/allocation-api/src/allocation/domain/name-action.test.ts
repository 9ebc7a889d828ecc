import { describe, expect, test } from 'vitest'
import { findActionObstacle, toStateAfter } from './name-action.ts'

const address = { address: '203.0.113.1', acceptsLoopback: false }

describe('why an action has no effect', () => {
  test.each([
    ['active', 'release', address, null],
    ['reserved', 'release', address, null],
    ['free', 'release', address, 'not-found'],
    ['cooling-off', 'release', address, 'not-found'],
    ['held', 'release', address, 'not-found'],
    ['active', 'update', address, null],
    ['reserved', 'update', address, 'not-active'],
    ['free', 'update', address, 'not-found'],
    ['active', 'update', { ...address, address: undefined }, 'missing-lb-ip'],
    ['free', 'update', { ...address, address: undefined }, 'missing-lb-ip'],
    ['active', 'update', { ...address, address: '127.0.0.1' }, 'invalid-lb-ip'],
    ['active', 'update', { address: '127.0.0.1', acceptsLoopback: true }, null],
    ['cooling-off', 'lift-cool-off', address, null],
    ['active', 'lift-cool-off', address, 'not-found'],
    ['held', 'lift-cool-off', address, 'not-found'],
  ] as const)('%s, %s, %j: %s', (state, action, next, kind) => {
    expect(findActionObstacle(state, action, next)?.kind ?? null).toBe(kind)
  })
})

test.each([
  ['active', 'release', 60_000, 'cooling-off'],
  ['active', 'release', 0, 'free'],
  ['reserved', 'release', 60_000, 'free'],
  ['active', 'update', 60_000, 'active'],
  ['cooling-off', 'lift-cool-off', 60_000, 'free'],
] as const)('%s after %s with a cool-off of %d ms is %s', (state, action, coolOffMs, after) => {
  expect(toStateAfter(state, action, coolOffMs)).toBe(after)
})

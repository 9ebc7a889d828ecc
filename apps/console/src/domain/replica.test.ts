import { expect, test } from 'vitest'
import { describeReplica } from './replica.ts'

const now = Date.parse('2026-01-31T12:01:00.000Z')
const replica = { lastSeenAt: '2026-01-31T12:00:55.000Z', isReady: true, circuitOpen: false }

test.each([
  [replica, 'ready'],
  [{ ...replica, isReady: false }, 'not ready'],
  [{ ...replica, circuitOpen: true }, 'DNS calls suspended'],
  [{ ...replica, circuitOpen: true, lastSeenAt: '2026-01-31T11:59:00.000Z' }, 'has ended'],
])('%o', (given, text) => expect(describeReplica(given, now).text).toBe(text))

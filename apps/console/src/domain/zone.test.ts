import { expect, test } from 'vitest'
import { describeFailing, describeStop, describeTrust, describeZone } from './zone.ts'

type Zone = Parameters<typeof describeZone>[0]
const healthy: Zone = { failing: [], pendingNames: 0, status: 'managed' }
const failing = [{ cause: 'conflict', names: 2 }]

test.each<[Zone, string, string]>([
  [{ ...healthy }, 'ok', 'in sync'],
  [{ ...healthy, status: 'former' }, 'idle', 'not written'],
  [{ ...healthy, pendingNames: 3 }, 'busy', 'pending'],
  [{ ...healthy, pendingNames: 3, failing }, 'bad', 'failing'],
  [{ ...healthy, failing, stopped: 'imported' }, 'bad', 'stopped'],
])('the health of %j', (zone, tone, text) => expect(describeZone(zone)).toEqual({ tone, text }))

test('failing names have a reason', () => {
  expect(describeFailing({ failing: [] })).toBe('0')
  const failing = [
    { cause: 'foreign-record', names: 1_200 },
    { cause: 'new-cause', names: 1 },
  ]
  expect(describeFailing({ failing })).toBe('1,200 (a record of another writer is in the way), 1 (new-cause)')
})

test('a resume says which side loses', () => {
  expect(describeTrust('database').join(' ')).toContain('Orphans')
  expect(describeTrust('zone').join(' ')).toContain('No client has a valid token')
  expect(describeStop('other-installation')).toContain('two installations')
})

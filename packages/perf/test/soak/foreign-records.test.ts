import { describe, expect, it } from 'vitest'
import { checkForeignRecords, type ForeignRecord } from '../../src/soak/checks/foreign-records.ts'
import type { ReplayRow } from '../../src/soak/checks/history.ts'

const set = { name: 'shop.acme.pool.test', type: 'TXT', ttl: 60, values: ['"planted"'] }
const listed = [{ name: set.name, type: set.type, ttl: set.ttl, data: set.values }]
const createRecord = (change: Partial<ForeignRecord> = {}): ForeignRecord => ({
  subdomain: 'acme',
  set,
  isOverwrite: false,
  start: 100,
  end: 110,
  ...change,
})
const createRow = (at: number, event: string, change: Partial<ReplayRow> = {}): ReplayRow => ({
  id: at,
  at,
  subdomain: 'acme',
  event,
  renewalCount: null,
  renewedUntil: null,
  from: event === 'committed' ? 'reserved' : 'active',
  to: 'active',
  owner: 'a',
  requestId: null,
  detail: null,
  deletedRecords: null,
  ...change,
})
const firstHolder = [createRow(10, 'committed'), createRow(20, 'published')]
const released = createRow(30, 'released')
const withdrawn = createRow(40, 'withdrawn')
const secondHolder = [createRow(50, 'committed'), createRow(60, 'published')]
const whole = [...firstHolder, released, withdrawn, ...secondHolder]
const purged = [createRow(120, 'committed'), createRow(130, 'published', { deletedRecords: listed })]
const releasedLater = [createRow(200, 'released'), createRow(210, 'withdrawn', { deletedRecords: listed })]

describe('records of other writers at or below a name', () => {
  it.each<readonly [string, readonly ReplayRow[], boolean]>([
    ['stays below a free name that was never active', [], true],
    ['stays while the name is active', whole, true],
    ['goes before the publication of the next holder', [...firstHolder, released, withdrawn, ...purged], false],
    ['may stay below a free name', [...firstHolder, released, withdrawn], true],
    ['goes with the release', [...whole, ...releasedLater], false],
    [
      'goes below a free name in a later drift check',
      [...firstHolder, released, createRow(130, 'repaired', { deletedRecords: listed })],
      false,
    ],
    ['may stay if it was written during a release', [...whole, createRow(105, 'released')], true],
  ])('%s', (_, history, isPresent) => {
    expect(checkForeignRecords([createRecord()], history)).toEqual({
      present: isPresent ? [set] : [],
      unknown: [],
      violations: [],
    })
  })

  it('an overwritten record set of the service is not expected, listed or not', () => {
    const overwrite = createRecord({ isOverwrite: true })
    const silent = [...whole, createRow(200, 'released'), createRow(210, 'withdrawn')]
    for (const history of [silent, [...whole, ...releasedLater]])
      expect(checkForeignRecords([overwrite], history)).toEqual({ present: [], unknown: [], violations: [] })
  })

  it('nothing is expected of a write without a response', () => {
    const record = createRecord({ end: Number.POSITIVE_INFINITY })
    expect(checkForeignRecords([record], [...whole, createRow(200, 'released')])).toEqual({
      present: [],
      unknown: [set],
      violations: [],
    })
  })

  it.each<readonly [string, RegExp, readonly ReplayRow[], readonly ForeignRecord[]]>([
    ['a record that survived a release', /^not deleted/, [...whole, createRow(200, 'released')], [createRecord()]],
    [
      'a record deleted below an active name',
      /^deleted although/,
      [...whole, createRow(200, 'repaired', { deletedRecords: listed })],
      [createRecord()],
    ],
    [
      'a listed record that no other writer wrote',
      /which no other writer wrote/,
      [...whole, ...releasedLater],
      [createRecord({ set: { ...set, values: ['"other"'] } })],
    ],
    [
      'a record that is listed twice',
      /2 times/,
      [...whole, ...releasedLater, createRow(220, 'withdrawn', { deletedRecords: listed })],
      [createRecord()],
    ],
    [
      'a record that is listed for another name',
      /for another name/,
      [...whole, createRow(200, 'released'), createRow(210, 'withdrawn', { deletedRecords: listed, subdomain: 'b' })],
      [createRecord()],
    ],
  ])('caught: %s', (_, fault, history, records) => {
    expect(checkForeignRecords(records, history).violations.join('\n')).toMatch(fault)
  })
})

import { describe, expect, it } from 'vitest'
import {
  findLostWrites,
  findReplayMismatches,
  parseOperationKey,
  type ReplayRow,
  type TableRow,
} from '../../src/soak/checks/history.ts'
import { at, commitment, grant, lift, type Operations, rejection, release, renewal, update } from './operations.ts'

let id = 0
const row = (event: string, from: string, to: string, change: Partial<ReplayRow> = {}): ReplayRow => {
  id += 1
  return {
    id,
    subdomain: 'acme',
    event,
    from,
    to,
    owner: 'a',
    requestId: null,
    detail: null,
    at: id,
    deletedRecords: null,
    renewalCount: null,
    renewedUntil: null,
    ...change,
  }
}
const reserved = (change?: Partial<ReplayRow>) => row('reserved', 'none', 'reserved', change)
const committed = (change?: Partial<ReplayRow>) => row('committed', 'reserved', 'active', change)
const expired = (change?: Partial<ReplayRow>) => row('expired', 'reserved', 'none', change)
const published = (change?: Partial<ReplayRow>) => row('published', 'active', 'active', change)

const createTableRow = (state: TableRow['state'], owner = 'a', subdomain = 'acme'): TableRow => ({
  subdomain,
  state,
  owner,
  address: state === 'active' ? '10.0.0.1' : null,
})

describe('history replays to the table', () => {
  it.each<readonly [string, readonly ReplayRow[], readonly TableRow[]]>([
    ['nothing', [], []],
    ['a reservation', [reserved()], [createTableRow('reserved')]],
    ['an expired reservation', [reserved(), expired()], []],
    [
      'a sync that is recorded after the release',
      [reserved(), committed(), row('released', 'active', 'none'), published()],
      [],
    ],
  ])('good: %s', (_, history, table) => {
    expect(findReplayMismatches(history, table)).toEqual([])
  })

  it.each<readonly [string, RegExp, readonly ReplayRow[], readonly TableRow[]]>([
    ['a row without a history', /acme: table reserved by a, history free/, [], [createTableRow('reserved')]],
    ['a lost row', /acme: table free, history active by a/, [reserved(), committed()], []],
    [
      'a second reservation of a reserved name',
      /reserved from none, but its state was reserved/,
      [reserved(), reserved()],
      [createTableRow('reserved')],
    ],
    [
      'a commit for another owner',
      /for b, but its owner was a/,
      [reserved(), committed({ owner: 'b' })],
      [createTableRow('active', 'b')],
    ],
  ])('caught: %s', (_, fault, history, table) => {
    expect(findReplayMismatches(history, table).join('\n')).toMatch(fault)
  })
})

const by = (callId: string, attempt = 1) => ({ requestId: `${callId}.${attempt}` })
const releasedBy = (callId: string) => row('released', 'active', 'none', by(callId))

describe('no acknowledged write is lost', () => {
  it('a request id contains the Idempotency-Key', () => {
    expect(['c0-17.1', 'c0-17.12', 'x', ''].map(parseOperationKey)).toEqual(['c0-17', 'c0-17', 'x', ''])
  })

  it.each<readonly [string, Operations, readonly ReplayRow[]]>([
    ['a reservation', [grant([0, 1], 'a')], [reserved(by('reserve-a'))]],
    [
      'a renewal',
      [grant([0, 1], 'a'), renewal([0, 1], 'a', 9)],
      [reserved(by('reserve-a')), expired({ renewalCount: 1, renewedUntil: at(9) })],
    ],
    ['an update without a response', [update([0, 1], 'a', '10.0.0.2', false)], []],
    ['a release', [release([0, 1], 'a')], [releasedBy('release-a')]],
    ['a release without a response', [release([0, 1], 'a', false)], []],
    [
      'a rejected take-back that was granted and expired',
      [rejection([0, 1], 'take-back', 'a')],
      [reserved(by('take-back-a'))],
    ],
    ['a rejected commit', [rejection([0, 1], 'commit', 'a')], []],
  ])('good: %s', (_, operations, history) => {
    expect(findLostWrites(operations, history)).toEqual([])
  })

  it.each<readonly [string, RegExp, Operations, readonly ReplayRow[]]>([
    ['a lost reservation', /lost: acme reserved for reserve-a/, [grant([0, 1], 'a')], [reserved(by('reserve-ab'))]],
    [
      'a lost renewal',
      /lost: 1 renewals of acme until/,
      [grant([0, 1], 'a'), renewal([0, 1], 'a', 9)],
      [reserved(by('reserve-a')), expired()],
    ],
    [
      'a lost second renewal',
      /lost: 2 renewals of acme until/,
      [grant([0, 1], 'a'), renewal([0, 1], 'a', 9), renewal([2, 3], 'a', 12)],
      [reserved(by('reserve-a')), expired({ renewalCount: 2, renewedUntil: at(9) })],
    ],
    ['a commit of another name', /lost/, [commitment([0, 1], 'a')], [committed({ ...by('commit-a'), subdomain: 'b' })]],
    ['a lost commit', /lost: acme committed/, [commitment([0, 1], 'a')], []],
    ['a lost update', /lost: acme updated/, [update([0, 1], 'a', '10.0.0.2')], []],
    ['a lost end of a cool-off', /lost: acme cool-off-lifted/, [lift([0, 1])], []],
    ['a lost release', /lost: acme released/, [release([0, 1], null)], []],
    [
      'a commit that was applied twice',
      /applied 2 times/,
      [commitment([0, 1], 'a')],
      [committed(by('commit-a')), committed(by('commit-a', 2))],
    ],
    [
      'a release that was rejected but applied',
      /rejected but applied: release of acme/,
      [rejection([0, 1], 'release', 'a')],
      [releasedBy('release-a')],
    ],
  ])('caught: %s', (_, fault, operations, history) => {
    expect(findLostWrites(operations, history).join('\n')).toMatch(fault)
  })
})

import { describe, expect, it } from 'vitest'
import { acknowledgedFaults, intentionOf } from '../../src/soak/checks/acknowledged.ts'
import { type EntryWithId, replayFaults, type TableRow } from '../../src/soak/checks/replay.ts'
import { type Acts, commitment, denial, grant, release, renewal } from './acts.ts'

let id = 0
const row = (event: string, from: string, to: string, change: Partial<EntryWithId> = {}): EntryWithId => {
  id += 1
  return { id, subdomain: 'acme', event, from, to, owner: 'a', requestId: null, detail: null, ...change }
}
const reserved = (change?: Partial<EntryWithId>) => row('reserved', 'none', 'reserved', change)
const committed = (change?: Partial<EntryWithId>) => row('committed', 'reserved', 'active', change)
const expired = (change?: Partial<EntryWithId>) => row('expired', 'reserved', 'none', change)
const published = (change?: Partial<EntryWithId>) => row('published', 'active', 'active', change)

const stands = (state: TableRow['state'], owner = 'a', subdomain = 'acme'): TableRow => ({
  subdomain,
  state,
  owner,
  address: state === 'active' ? '10.0.0.1' : null,
})

describe('the history replays to the table', () => {
  it.each<readonly [string, readonly EntryWithId[], readonly TableRow[]]>([
    ['nothing', [], []],
    ['a reservation', [reserved()], [stands('reserved')]],
    ['an active name', [reserved(), committed(), published()], [stands('active')]],
    ['a name that came and went', [reserved(), expired()], []],
    ['one owner after another', [reserved(), expired(), reserved({ owner: 'b' })], [stands('reserved', 'b')]],
    ['what a pass reports late', [reserved(), committed(), row('released', 'active', 'none'), published()], []],
    ['two names', [reserved(), reserved({ subdomain: 'b' })], [stands('reserved'), stands('reserved', 'a', 'b')]],
  ])('good: %s', (_, history, table) => {
    expect(replayFaults(history, table)).toEqual([])
  })

  it.each<readonly [string, RegExp, readonly EntryWithId[], readonly TableRow[]]>([
    ['a row without a history', /acme is reserved of a; by its history free/, [], [stands('reserved')]],
    ['a lost row', /acme is free; by its history active of a/, [reserved(), committed()], []],
    [
      'a row in another state',
      /is reserved of a; by its history active/,
      [reserved(), committed()],
      [stands('reserved')],
    ],
    [
      'a row of another owner',
      /is reserved of b; by its history reserved of a/,
      [reserved()],
      [stands('reserved', 'b')],
    ],
    [
      'a second reservation of what is taken',
      /was reserved from none, and was reserved/,
      [reserved(), reserved()],
      [stands('reserved')],
    ],
    ['a commit of what is free', /was committed from reserved, and was none/, [committed()], [stands('active')]],
    [
      'a commit for another',
      /for b, and belonged to a/,
      [reserved(), committed({ owner: 'b' })],
      [stands('active', 'b')],
    ],
  ])('caught: %s', (_, fault, history, table) => {
    expect(replayFaults(history, table).join('\n')).toMatch(fault)
  })
})

const by = (intention: string, attempt = 1) => ({ requestId: `${intention}.${attempt}` })
const releasedBy = (intention: string) => row('released', 'active', 'none', by(intention))

describe('no acknowledged write is lost', () => {
  it('finds the intention of a request id', () => {
    expect(['c0-17.1', 'c0-17.12', 'x', ''].map(intentionOf)).toEqual(['c0-17', 'c0-17', 'x', ''])
  })

  it.each<readonly [string, Acts, readonly EntryWithId[]]>([
    ['a reservation', [grant([0, 1], 'a')], [reserved(by('reserve-a'))]],
    ['made by a later attempt', [grant([0, 1], 'a')], [reserved(by('reserve-a', 7))]],
    ['decided anew', [grant([0, 1], 'a')], [reserved(by('reserve-a')), reserved(by('reserve-a', 2))]],
    ['a renewal', [renewal([0, 1], 'a', 9)], [row('renewed', 'reserved', 'reserved', by('renew-a'))]],
    ['a commit', [commitment([0, 1], 'a')], [committed(by('commit-a'))]],
    ['a release', [release([0, 1], 'a')], [releasedBy('release-a')]],
    ['a release without an answer', [release([0, 1], 'a', false)], []],
    ['what was refused', [denial([0, 1], 'commit', 'a')], []],
  ])('good: %s', (_, acts, history) => {
    expect(acknowledgedFaults(acts, history)).toEqual([])
  })

  it.each<readonly [string, RegExp, Acts, readonly EntryWithId[]]>([
    ['a lost reservation', /lost: acme was reserved for reserve-a/, [grant([0, 1], 'a')], [reserved(by('reserve-ab'))]],
    ['a lost renewal', /lost: acme was renewed/, [renewal([0, 1], 'a', 9)], [reserved(by('renew-a'))]],
    ['a lost commit', /lost: acme was committed/, [commitment([0, 1], 'a')], []],
    ['a commit of another name', /lost/, [commitment([0, 1], 'a')], [committed({ ...by('commit-a'), subdomain: 'b' })]],
    ['a lost release', /lost: acme was released/, [release([0, 1], null)], []],
    [
      'a commit that was made twice',
      /made 2 times/,
      [commitment([0, 1], 'a')],
      [committed(by('commit-a')), committed(by('commit-a', 2))],
    ],
    [
      'a release that was refused and made',
      /refused and made: release of acme/,
      [denial([0, 1], 'release', 'a')],
      [releasedBy('release-a')],
    ],
  ])('caught: %s', (_, fault, acts, history) => {
    expect(acknowledgedFaults(acts, history).join('\n')).toMatch(fault)
  })
})

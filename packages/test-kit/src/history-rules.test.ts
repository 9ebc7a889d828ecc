import { expect, test } from 'vitest'
import { findHistoryErrors, type RecordHistoryEntry } from './history-rules.ts'

const row = (text: string): RecordHistoryEntry => {
  const [event = '', from = 'none', detail = null] = text.split('|')
  return { subdomain: 'acme', event, from, detail }
}
const foreign = 'failing|active|A record of type A that is not managed by this service exists there.'

test.each<[rows: string[], isObstructed: boolean, faults: string[]]>([
  [[], false, []],
  [['reserved', 'committed', 'published', 'released|active', 'withdrawn'], false, []],
  [['committed', 'published', 'repaired'], false, []],
  [['committed', 'released|active', 'published', 'withdrawn'], false, []],
  [['committed', 'failing|active|a', 'released|active', 'failing|none|a', 'withdrawn'], false, []],
  [['committed', 'failing|active|a', 'failing|active|[zone] b', 'published'], false, []],
  [['committed', foreign], true, []],
  [['committed', foreign], false, ['the last change or failure was not resolved']],
  [['committed'], false, ['the last change or failure was not resolved']],
  [['committed', 'published', 'released|active'], false, ['the last change or failure was not resolved']],
  [
    ['published', 'committed', 'published'],
    false,
    ['published without a commit or a change', 'published without a commit or a change'],
  ],
  [['committed', 'published', 'updated', 'published', 'released|active', 'withdrawn'], false, []],
  [['committed', 'published', 'republished', 'published'], false, []],
  [['adopted', 'published', 'released|active', 'withdrawn'], false, []],
  [['orphan-removed', 'withdrawn', 'committed', 'published'], false, []],
  [['committed', 'published', 'republished'], false, ['the last change or failure was not resolved']],
  [['committed', 'updated', 'published', 'updated'], false, ['the last change or failure was not resolved']],
  [
    ['committed', 'published', 'withdrawn', 'released|active', 'withdrawn'],
    false,
    ['withdrawn without a release', 'withdrawn without a release'],
  ],
  [['released|reserved', 'withdrawn'], false, ['withdrawn without a release']],
  [['committed', 'repaired', 'published'], false, ['repaired without a published record']],
  [['committed', 'failing|active|a', 'failing|active|b', 'published'], false, ['failing twice: a / b']],
])('%j, blocked: %s', (rows, isObstructed, faults) => {
  expect(findHistoryErrors(rows.map(row), isObstructed)).toEqual(faults)
})

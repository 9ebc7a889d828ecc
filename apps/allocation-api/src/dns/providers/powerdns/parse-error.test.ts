import { expect, test } from 'vitest'
import { parseOwner } from './parse-error.ts'

// As 4.7.3 says them.
test.each([
  ["Record b.pool.test./A 'bad': Parsing record content (try 'pdnsutil check-zone'): while parsing", 'b.pool.test'],
  ["Record *.b.pool.test./TXT 'RRset c.pool.test. IN A': Not in expected format", '*.b.pool.test'],
  ['RRset c.pool.test. IN A: Conflicts with pre-existing RRset', 'c.pool.test'],
  ['RRset C.pool.test. IN A: Name is out of zone', 'c.pool.test'],
  ['RRset c.pool.test. IN CNAME has more than one record', 'c.pool.test'],
  ['Duplicate RRset d.pool.test. IN A with changetype: REPLACE', 'd.pool.test'],
  ['Duplicate record in RRset e.pool.test. IN A with content "192.0.2.1"', 'e.pool.test'],
  ["Unable to parse DNS Name 'e..pool.test.'", 'e..pool.test'],
  ["Name 'e\\032e.pool.test.' contains unsupported characters", 'e\\032e.pool.test'],
  ['No rrsets given in update request', undefined],
  ['Something about RRset c.pool.test. IN A', undefined],
  ['', undefined],
])('ownerIn: %s', (error, expected) => {
  expect(parseOwner(error)).toBe(expected)
})

import { expect, test } from 'vitest'
import { createRecords, type RecordSet } from '../../dns/domain/rrset.ts'
import { toTemplateChanges } from './republish.ts'

const create = (names: string[], ttl = 300): RecordSet[] => createRecords('acme.pool.test', '192.0.2.1', { names, ttl })
const upsert = (set: RecordSet | undefined) => ({ kind: 'upsert', set })
const remove = (name: string) => ({ kind: 'delete', name, type: 'A' })

test.each([
  ['the same record sets', create(['@', '*']), create(['@', '*']), []],
  ['another order', create(['@', '*']), create(['*', '@']), []],
  ['one more name', create(['@']), create(['@', 'api']), [upsert(create(['api'])[0])]],
  ['one name less', create(['@', 'api']), create(['@']), [remove('api.acme.pool.test')]],
  ['another TTL', create(['@', '*']), create(['@', '*'], 60), create(['@', '*'], 60).map(upsert)],
  [
    'other names, deletions first',
    create(['@', 'api']),
    create(['@', 'www']),
    [remove('api.acme.pool.test'), upsert(create(['www'])[0])],
  ],
])('%s', (_, desired, wanted, changes) => {
  expect(toTemplateChanges(desired, wanted)).toEqual(changes)
})

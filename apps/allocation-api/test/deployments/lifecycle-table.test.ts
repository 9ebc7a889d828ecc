import { readFileSync } from 'node:fs'
import { deploymentStatuses } from '@pool/contract'
import { describe, expect, test } from 'vitest'
import {
  type Call,
  calls,
  decideCall,
  isFinished,
  operations,
  type Situation,
  type Verdict,
} from '../../src/deployments/domain/lifecycle.ts'

const documentation = readFileSync(new URL('../../../../docs/reference/api.md', import.meta.url), 'utf8')
const section = documentation.slice(documentation.indexOf('### Statuses and calls'))
const [header = [], , ...rows] = section
  .slice(section.indexOf('| status'), section.indexOf('\n\nA name that is still'))
  .split('\n')
  .map(line =>
    line
      .split('|')
      .map(cell => cell.trim())
      .slice(1, -1),
  )

const columns: Readonly<Record<Call, string>> = {
  create: 'create',
  apply: 'apply',
  plan: 'plan',
  destroy: 'destroy',
  'plan-destroy': 'plan of a destroy',
  delete: 'DELETE',
  abandon: 'DELETE `?abandon=true`',
  unlock: 'unlock',
}
const cells: Readonly<Record<Verdict, string>> = {
  created: '201',
  started: '202',
  planned: '200',
  cancelled: '202',
  deleted: '204',
  abandoned: '204',
  unlocked: '200',
  taken: '409 taken',
  'fqdn-remains': '409 `fqdn-remains`',
  'bucket-exists': '409 `bucket-exists`',
  'in-progress': '409 `in-progress`',
  'destroy-incomplete': '409 `destroy-incomplete`',
  'still-up': '409 `still-up`',
}

const toRowKey = ({ status, operation, hasInfrastructure, hasBucket }: Situation): string => {
  if (status === 'pending' || status === 'provisioning') return '`pending` `provisioning` anything'
  const remains = hasInfrastructure ? 'infrastructure' : hasBucket ? 'bucket' : 'nothing'
  const failed = operation === 'destroy' ? 'destroy ' : 'create or apply '
  return `\`${status}\` ${status === 'failed' ? failed : ''}${remains}`
}

/** Whether runs can leave a deployment like this. */
const isReachable = ({ status, operation, hasInfrastructure }: Situation): boolean => {
  if (status === 'destroying' || status === 'destroyed') {
    return operation === 'destroy' && !(status === 'destroyed' && hasInfrastructure)
  }
  if (status === 'ready') return operation !== 'destroy' && hasInfrastructure
  return isFinished(status) || operation !== 'destroy'
}

const situations: readonly Situation[] = deploymentStatuses
  .flatMap(status => operations.map(operation => ({ status, operation })))
  .flatMap(one => [true, false].map(hasInfrastructure => ({ ...one, hasInfrastructure })))
  .flatMap(one => [true, false].map(hasBucket => ({ ...one, hasBucket })))
  .filter(isReachable)

describe('the documented table of statuses and calls', () => {
  test('has a row for every situation, and no other row', () => {
    const documented = rows.map(([status, remains]) => `${status} ${remains}`)
    expect(documented.toSorted()).toEqual([...new Set(situations.map(toRowKey))].toSorted())
  })

  test.each(situations.flatMap(situation => calls.map(call => [situation, call] as const)))(
    '%j: %s',
    (situation, call) => {
      const row = rows.find(([status, remains]) => `${status} ${remains}` === toRowKey(situation)) ?? []
      expect(row[header.indexOf(columns[call])]).toBe(cells[decideCall(situation, call)])
    },
  )
})

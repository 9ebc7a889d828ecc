import type { NamePlan } from '@pool/contract'
import { describe, expect, test } from 'vitest'
import { describeDeploymentAction, describeNamePlan, findDeploymentActions } from './plans.ts'

const plan = (fields: Partial<NamePlan>): NamePlan => ({
  poolDomain: 'pool.test',
  subdomain: 'acme',
  action: 'release',
  from: 'active',
  to: 'free',
  changes: [],
  deletedRecords: [],
  ...fields,
})
const change = (action: 'upsert' | 'delete') =>
  ({ subdomain: 'acme', action, name: 'acme.pool.test', type: 'A' }) as const
const record = { name: 'x.acme.pool.test', type: 'TXT', ttl: 60, data: ['v'] }

test.each<[string, Partial<NamePlan>, readonly string[]]>([
  [
    'a release into a cool-off',
    {
      to: 'cooling-off',
      coolOffSeconds: 3_600,
      changes: [change('delete'), change('delete')],
      deletedRecords: [record],
    },
    [
      'acme.pool.test is released. Only its former client can reserve it for 1\u00a0h.',
      'In DNS, 2 record sets are deleted and 1 record set of other writers at or below the name is deleted.',
      'Clients that resolve the name get no address after the TTL.',
    ],
  ],
  [
    'a release of a name that has only a record of another writer',
    { changes: [{ ...change('delete'), name: record.name, type: 'TXT' }], deletedRecords: [record] },
    [
      'acme.pool.test is released. Any client can reserve it immediately.',
      'In DNS, 1 record set of other writers at or below the name is deleted.',
      'Clients that resolve the name get no address after the TTL.',
    ],
  ],
  [
    'an update',
    { action: 'update', to: 'active', changes: [change('upsert')] },
    ['acme.pool.test stays active and gets the new address.', 'In DNS, 1 record set is written.'],
  ],
  [
    'the end of a cool-off',
    { action: 'lift-cool-off', from: 'cooling-off' },
    ['The cool-off of acme.pool.test ends. Any client can reserve it.', 'DNS does not change.'],
  ],
])('describes %s', (_, fields, sentences) => expect(describeNamePlan(plan(fields))).toEqual(sentences))

test('a plan without the zone, and a conflict, say so without obeying escape sequences', () => {
  const sentences = describeNamePlan(plan({ unavailable: 'timed \u001b[2Jout', conflict: 'a CNAME exists' }))
  expect(sentences.at(-2)).toContain('timed <ESC>[2Jout')
  expect(sentences.at(-1)).toBe('The records are not written: a CNAME exists')
})

describe('deployments', () => {
  const deployment = { sovereignFQDN: 'acme.pool.test', objectStorageBucket: 'p-acme', status: 'ready' } as const
  test.each([
    ['provisioning', ['cancel']],
    ['ready', ['apply', 'destroy', 'abandon']],
    ['failed', ['apply', 'destroy', 'delete', 'abandon', 'unlock']],
    ['destroyed', ['apply', 'delete']],
  ] as const)('the actions of one that is %s', (status, actions) =>
    expect(findDeploymentActions({ ...deployment, status })).toEqual(actions),
  )
  test('Terraform needs the keys if there is a bucket', () => {
    expect(describeDeploymentAction('destroy', deployment).needsKeys).toBe(true)
    expect(describeDeploymentAction('destroy', { ...deployment, objectStorageBucket: '' }).needsKeys).toBe(false)
    expect(describeDeploymentAction('abandon', deployment).needsKeys).toBe(false)
    const kept = describeDeploymentAction('delete', { ...deployment, keptBucket: 'p-acme' }).consequences.join(' ')
    expect(kept).toContain('A new deployment of acme.pool.test can use them')
    expect(describeDeploymentAction('destroy', deployment).consequences.join(' ')).toContain('p-acme')
  })
})

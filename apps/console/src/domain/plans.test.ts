import type { NamePlan } from '@pool/contract'
import { describe, expect, test } from 'vitest'
import {
  describeDeploymentAction,
  describeNamePlan,
  describeRemedy,
  findDeploymentActions,
  toPlanTone,
} from './plans.ts'

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

test.each([
  ['  + resource "x" "y" {', 'added'],
  ['-/+ resource "x" "y" {', 'changed'],
  ['      ~ input = 1 -> 2', 'changed'],
  ['      - tags = {', 'removed'],
  ['  # x.y will be created', 'heading'],
  ['Plan: 1 to add, 0 to change, 0 to destroy.', 'heading'],
  ['        id = -1', ''],
])('a line of a plan: %s', (line, tone) => expect(toPlanTone(line)).toBe(tone))

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
  test('after a destroy that failed, only another one is offered and advised', () => {
    const failed = { ...deployment, status: 'failed', operation: 'destroy' } as const
    expect(findDeploymentActions(failed)).toEqual(['destroy', 'delete', 'abandon', 'unlock'])
    expect(describeRemedy(failed)).toMatch(/^Destroy again/)
    for (const operation of ['create', 'apply'] as const) {
      expect(describeRemedy({ ...failed, operation })).toMatch(/^Apply again/)
      expect(findDeploymentActions({ ...failed, operation })).toContain('apply')
    }
  })
  test('what ends or forgets machines is confirmed with the name', () => {
    const actions = ['apply', 'destroy', 'cancel', 'delete', 'abandon', 'unlock'] as const
    expect(actions.filter(action => describeDeploymentAction(action, deployment).needsName)).toEqual([
      'destroy',
      'abandon',
    ])
  })
  test('Terraform needs the keys if there is a bucket', () => {
    expect(describeDeploymentAction('destroy', deployment).needsKeys).toBe(true)
    expect(describeDeploymentAction('destroy', { ...deployment, objectStorageBucket: '' }).needsKeys).toBe(false)
    expect(describeDeploymentAction('abandon', deployment).needsKeys).toBe(false)
    const kept = describeDeploymentAction('delete', { ...deployment, keptBucket: 'p-acme' }).consequences.join(' ')
    expect(kept).toContain('A new deployment of acme.pool.test can use them')
    expect(describeDeploymentAction('destroy', deployment).consequences.join(' ')).toContain('p-acme')
  })
})

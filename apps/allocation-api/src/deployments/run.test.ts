import { expect, test } from 'vitest'
import type { AccessKeyPair, RunState } from './domain/types.ts'
import { decideResume, explainUnfinished, type ResumeDecision } from './run.ts'

const credentials: AccessKeyPair = { accessKey: 'a'.repeat(16), secretKey: 's'.repeat(32) }
const state: RunState = {
  id: 'an-id',
  generation: 1,
  spec: {
    orgName: 'Acme',
    orgEmail: 'ops@acme.example',
    sovereignFQDN: 'acme.pool.test',
    name: null,
    providers: ['hetzner'],
    region: 'fsn1',
    sshPublicKey: 'ssh-ed25519 AAAA',
    storage: { region: 'fsn1', bucket: 'catalyst-acme-pool-test' },
  },
  lineageId: 'a-lineage',
  operation: 'create',
  plan: null,
  attempt: 1,
  reservationTokenHash: null,
  hasInfrastructure: false,
  isApplied: false,
  stateLock: null,
  knownState: null,
  hasCreatedBucket: false,
  result: null,
  isCancelled: false,
  pendingError: null,
  lineCount: 0,
}
const withoutStorage: Partial<RunState> = { spec: { ...state.spec, storage: null } }
const result = { sovereignFQDN: 'acme.pool.test', loadBalancerIP: '192.0.2.1' }

test.each<
  [what: string, change: Partial<RunState>, credentials: AccessKeyPair | null, expected: ResumeDecision | RegExp]
>([
  ['with its credentials', {}, credentials, { kind: 'apply' }],
  ['resumed without its credentials', { generation: 2 }, null, /credentials were only in its memory/],
  ['resumed, and it needs none', { ...withoutStorage, generation: 2 }, null, { kind: 'apply' }],
  [
    'resumed, and its infrastructure is up',
    { generation: 2, isApplied: true, result },
    null,
    { kind: 'commit', result },
  ],
  ['resumed, and only an earlier operation applied the module', { ...withoutStorage, result }, null, { kind: 'apply' }],
  ['a destroy', { operation: 'destroy', hasInfrastructure: true }, credentials, { kind: 'destroy' }],
  [
    'a destroy without its credentials',
    { operation: 'destroy', hasInfrastructure: true },
    null,
    /only in its memory. Destroy the deployment again/,
  ],
  [
    'a destroy that is cancelled',
    { operation: 'destroy', hasInfrastructure: true, isCancelled: true },
    credentials,
    /Cancelled/,
  ],
  [
    'a destroy whose infrastructure is gone',
    { operation: 'destroy', isCancelled: true, attempt: 21 },
    null,
    { kind: 'withdraw' },
  ],
  ['cancelled', { isCancelled: true }, credentials, /Cancelled/],
  ['cancelled, although its infrastructure is up', { isCancelled: true, isApplied: true, result }, null, /Cancelled/],
  [
    'failing for a reason that was decided earlier',
    { pendingError: 'no machine', isCancelled: true, isApplied: true, result },
    credentials,
    /no machine/,
  ],
  ['resumed for the last time', { ...withoutStorage, attempt: 20 }, null, { kind: 'apply' }],
  ['resumed too often', { ...withoutStorage, attempt: 21 }, null, /after 20 runs/],
  [
    'resumed too often, but its infrastructure is up',
    { ...withoutStorage, attempt: 21, isApplied: true, result },
    null,
    { kind: 'commit', result },
  ],
])('%s', (_, change, given, expected) => {
  const decision = decideResume({ ...state, ...change }, given)
  expect(decision).toEqual(
    expected instanceof RegExp ? { kind: 'fail', reason: expect.stringMatching(expected) } : expected,
  )
})

test.each([
  ['create', 'then apply or destroy the deployment'],
  ['apply', 'then apply or destroy the deployment'],
  // An apply after a destroy that failed is rejected.
  ['destroy', 'then destroy the deployment'],
] as const)('after a %s that left something, only what is possible is advised', (operation, advice) => {
  const text = explainUnfinished([{ address: 'm.a' }], operation)
  expect(text).toContain('did not save that it created m.a: these may exist')
  expect(text).toContain(`Delete at the provider what exists of them, ${advice} with unfinishedRemoved: true.`)
  expect(explainUnfinished([], operation)).toBe('')
})

import { expect, test } from 'vitest'
import { decideResume, type ResumeDecision } from './run.ts'
import type { AccessKeyPair, RunState } from './types.ts'

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
  reservationTokenHash: null,
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
  ['resumed, and its infrastructure is up', { generation: 2, result }, null, { kind: 'commit', result }],
  ['cancelled', { isCancelled: true }, credentials, /Cancelled/],
  ['cancelled, although its infrastructure is up', { isCancelled: true, result }, null, /Cancelled/],
  [
    'failing for a reason that was decided earlier',
    { pendingError: 'no machine', isCancelled: true, result },
    credentials,
    /no machine/,
  ],
  ['resumed for the last time', { ...withoutStorage, generation: 20 }, null, { kind: 'apply' }],
  ['resumed too often', { ...withoutStorage, generation: 21 }, null, /after 20 runs/],
  [
    'resumed too often, but its infrastructure is up',
    { ...withoutStorage, generation: 21, result },
    null,
    { kind: 'commit', result },
  ],
])('%s', (_, change, given, expected) => {
  const decision = decideResume({ ...state, ...change }, given)
  expect(decision).toEqual(
    expected instanceof RegExp ? { kind: 'fail', reason: expect.stringMatching(expected) } : expected,
  )
})

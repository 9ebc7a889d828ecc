import { expect, test } from 'vitest'
import { nextStep } from './resume.ts'
import type { Job, ObjectStorageCredentials } from './types.ts'

const keys: ObjectStorageCredentials = { accessKey: 'a'.repeat(16), secretKey: 's'.repeat(32) }
const job: Job = {
  id: 'an-id',
  generation: 1,
  order: {
    orgName: 'Acme',
    orgEmail: 'ops@acme.example',
    sovereignFQDN: 'acme.pool.test',
    name: null,
    providers: ['hetzner'],
    region: 'fsn1',
    sshPublicKey: 'ssh-ed25519 AAAA',
    storage: { region: 'fsn1', bucket: 'catalyst-acme-pool-test' },
  },
  reservationToken: null,
  result: null,
  isCancelled: false,
  failure: null,
  lineCount: 0,
}
const keyless: Partial<Job> = { order: { ...job.order, storage: null } }
const result = { sovereignFQDN: 'acme.pool.test', loadBalancerIP: '192.0.2.1' }

test.each<[what: string, change: Partial<Job>, keys: ObjectStorageCredentials | null, expected: string | RegExp]>([
  ['with its keys', {}, keys, 'make'],
  ['taken up, its keys gone', { generation: 2 }, null, /keys were in its memory alone/],
  ['taken up, and it needs none', { ...keyless, generation: 2 }, null, 'make'],
  ['taken up, and it is up already', { generation: 2, result }, null, 'finish'],
  ['cancelled', { isCancelled: true }, keys, /cancelled/],
  ['cancelled, though it is up', { isCancelled: true, result }, null, /cancelled/],
  [
    'to fail, for the reason that was decided',
    { failure: 'no machine', isCancelled: true, result },
    keys,
    /no machine/,
  ],
  ['taken up for the last time', { ...keyless, generation: 20 }, null, 'make'],
  ['taken up too often', { ...keyless, generation: 21 }, null, /20 processes/],
  ['taken up often, and it is up at last', { ...keyless, generation: 21, result }, null, 'finish'],
])('%s', (_, change, given, expected) => {
  const step = nextStep({ ...job, ...change }, given)
  if (typeof expected === 'string') expect(step).toEqual({ kind: expected })
  else expect(step).toEqual({ kind: 'fail', reason: expect.stringMatching(expected) })
})

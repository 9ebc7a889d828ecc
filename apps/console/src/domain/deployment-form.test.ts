import { describe, expect, test } from 'vitest'
import {
  type DeploymentForm,
  describeBucketError,
  describeProof,
  findFaultyStep,
  findStepErrors,
  findSteps,
  formatDraft,
  parseDraft,
  toBucketName,
  toFieldErrors,
  toFqdn,
  toRequestBody,
} from './deployment-form.ts'
import { form, settings, sshPublicKey } from './example-form.ts'

const byo: DeploymentForm = { ...form, mode: 'byo', fqdn: 'Cloud.Acme.example.' }

test.each([
  [form, 'acme.pool.test', 'platform-acme-pool-test'],
  [byo, 'cloud.acme.example', 'platform-cloud-acme-example'],
  [{ ...form, subdomain: '' }, '', 'platform-'],
])('the names that a form leads to', (given, fqdn, bucket) => {
  expect(toFqdn(given)).toBe(fqdn)
  expect(toBucketName(given, settings)).toBe(bucket)
})

test('object storage is a step if its provider is chosen', () => {
  expect(findSteps(form, settings)).toEqual(['domain', 'organisation', 'storage', 'ssh', 'summary'])
  expect(findSteps({ ...form, providers: ['local'] }, settings)).toEqual(['domain', 'organisation', 'ssh', 'summary'])
})

describe('findStepErrors', () => {
  test.each([
    ['domain', form, []],
    ['domain', { ...form, subdomain: '1st' }, ['subdomain']],
    ['domain', { ...form, pool: '' }, ['pool']],
    ['domain', { ...byo, fqdn: 'localhost' }, ['fqdn']],
    [
      'organisation',
      { ...form, orgName: '', orgEmail: 'x', providers: [], region: 'A B' },
      ['orgName', 'orgEmail', 'providers', 'region'],
    ],
    ['storage', { ...form, objectStorageRegion: 'mars' }, ['objectStorageRegion']],
    ['ssh', { ...form, sshPublicKey: 'ssh-ed25519 AAAA' }, ['sshPublicKey']],
    ['summary', form, []],
  ] as const)('%s', (step, given, fields) => expect(Object.keys(findStepErrors(step, given))).toEqual(fields))
})

test('the body is what the service expects, without keys', () => {
  expect(toRequestBody(form, settings)).toEqual({
    orgName: 'Acme',
    orgEmail: 'ops@acme.example',
    sovereignDomainMode: 'pool',
    sovereignPoolDomain: 'pool.test',
    sovereignSubdomain: 'acme',
    providers: ['hetzner'],
    region: 'fsn1',
    objectStorageRegion: 'fsn1',
    sshPublicKey,
  })
  const body = toRequestBody({ ...byo, providers: ['local'] }, settings)
  expect(body).toMatchObject({ sovereignDomainMode: 'byo', sovereignFQDN: 'cloud.acme.example' })
  expect(body).not.toHaveProperty('objectStorageRegion')
})

describe('toFieldErrors', () => {
  const problem = (code: string, faults?: { field: string; detail: string }[]) => ({ code, detail: 'why', faults })
  test.each([
    [problem('subdomain-conflict'), form, { subdomain: 'why' }, 'domain'],
    [problem('domain-not-proven'), byo, { fqdn: 'why' }, 'domain'],
    [
      problem('invalid-deployment', [
        { field: 'objectStorageSecretKey', detail: 'rejected' },
        { field: 'sovereignFQDN', detail: 'bad' },
      ]),
      form,
      { objectStorageSecretKey: 'rejected', subdomain: 'bad' },
      'domain',
    ],
    [problem('provisioning-unavailable'), form, {}, undefined],
  ])('%o', (given, form, errors, step) => {
    expect(toFieldErrors(given, form)).toEqual(errors)
    expect(findFaultyStep(errors)).toBe(step)
  })
})

describe('drafts', () => {
  test('survive a reload, and continue before the keys', () =>
    expect(parseDraft(formatDraft({ step: 'summary', form }), settings)).toEqual({ step: 'storage', form }))
  test('continue where they were without object storage', () => {
    const draft = { step: 'summary', form: { ...form, providers: ['local'] } } as const
    expect(parseDraft(formatDraft(draft), settings)).toEqual(draft)
  })
  test('have no key that may be private', () => {
    const privateKey =
      '-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXktdjEAAAAA\n-----END OPENSSH PRIVATE KEY-----'
    expect(formatDraft({ step: 'ssh', form: { ...form, sshPublicKey: privateKey } })).not.toContain('b3BlbnNza')
  })
  test.each([[null], ['{'], ['{"step":"domain"}'], ['[]']])('%s is not a draft', text =>
    expect(parseDraft(text, settings)).toBe(null),
  )
})

test('a bucket that exists is used only if the form says so, and only with the keys of its owner', () => {
  const adopting = { ...form, adoptBucket: true }
  const find = (found: 'absent' | 'owned' | 'foreign', given: DeploymentForm) =>
    describeBucketError({ name: 'b', found }, given)
  expect(find('owned', form)).toContain('these keys own it')
  expect(find('foreign', adopting)).toContain('do not own it')
  expect([find('owned', adopting), find('absent', form), describeBucketError(undefined, form)]).toEqual([
    undefined,
    undefined,
    undefined,
  ])
  expect(toRequestBody(form, settings)).not.toHaveProperty('adoptBucket')
  expect(toRequestBody(adopting, settings)).toMatchObject({ adoptBucket: true })
  const problem = { code: 'bucket-exists', detail: 'It exists.', faults: undefined }
  expect(findFaultyStep(toFieldErrors(problem, form))).toBe('storage')
})

test.each([
  [{ proof: 'proven' }, 'ok', 'is proven'],
  [{ proof: 'missing', proofDetail: 'Create it.' }, 'busy', 'not visible yet'],
  [{ proof: 'unknown', proofDetail: 'It could not be looked up (ESERVFAIL).' }, 'bad', 'ESERVFAIL'],
  [{ proof: 'not-required' }, 'idle', 'does not require'],
] as const)('%j', (check, tone, text) => {
  expect(describeProof(check)).toEqual({ tone, text: expect.stringContaining(text) })
})

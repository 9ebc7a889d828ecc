import { type Deployment, encodeCursor } from '@pool/contract'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import type { CreateOutcome, PlanOutcome, StartOutcome } from '../../src/deployments/domain/types.ts'
import type { DeploymentOperations } from '../../src/deployments/service.ts'
import { createAppWithFakeDeployments, sendRequest } from '../support/fake-services-app.ts'
import { expectContract } from '../support/validate.ts'

const id = '0a000000-0000-4000-8000-00000000000b'
const token = '0b000000-0000-4000-8000-00000000000c'
const path = '/api/v1/deployments'
const deployment: Deployment = {
  id,
  status: 'failed',
  startedAt: '2026-01-31T12:00:00.000Z',
  finishedAt: '2026-01-31T12:10:00.000Z',
  orgName: 'Acme',
  sovereignFQDN: 'acme.pool.test',
  providers: ['local'],
  region: 'fsn1',
  objectStorageRegion: 'fsn1',
  objectStorageBucket: 'catalyst-acme-pool-test',
  numEvents: 3,
  error: 'Cancelled.',
}

/** An app whose deployment service returns these outcomes. Every response is validated against the contract. */
const createTestApp = (
  answers: { [Verb in keyof DeploymentOperations]?: Awaited<ReturnType<DeploymentOperations[Verb]>> | Error },
) => {
  const calls: unknown[][] = []
  const verbs = Object.entries(answers).map(([verb, answer]) => [
    verb,
    async (...given: unknown[]) => {
      calls.push([verb, ...given])
      if (answer instanceof Error) throw answer
      return answer
    },
  ])
  const { app, outcomes } = createAppWithFakeDeployments(Object.fromEntries(verbs))
  const call = async (method: string, where: string, body?: string, headers: Record<string, string> = {}) => {
    const response = await sendRequest(app, where, { method, headers, ...(body === undefined ? {} : { body }) })
    const answer = { status: response.status, headers: response.headers, text: await response.text() }
    expectContract(method, where, answer)
    return { ...answer, body: answer.text.startsWith('{') ? JSON.parse(answer.text) : undefined }
  }
  return { calls, outcomes, call }
}

describe('create', () => {
  test('201 has the locations of the deployment and its log; the service gets the raw body, the caller and the key', async () => {
    const { calls, outcomes, call } = createTestApp({ create: { kind: 'created', id, deploymentToken: token } })
    const { status, headers, body } = await call('POST', path, '{"any":["thing"]}', {
      'Idempotency-Key': 'k',
      'X-Request-Id': 'r',
    })
    expect([status, headers.get('location')]).toEqual([201, `${path}/${id}`])
    expect(body).toEqual({
      id,
      status: 'provisioning',
      streamURL: `${path}/${id}/logs`,
      deploymentToken: token,
    })
    expect(calls).toEqual([['create', { any: ['thing'] }, { actor: 'in-cluster', address: null, requestId: 'r' }, 'k']])
    expect(outcomes).toEqual(['created'])
  })

  test('400 lists every invalid field, and the first one as field and detail', async () => {
    const faults = [
      { field: 'region', detail: 'R.' },
      { field: 'sshPublicKey', detail: 'S.' },
    ]
    const { call, outcomes } = createTestApp({ create: { kind: 'invalid-deployment', faults } })
    const { status, body } = await call('POST', path, '{}')
    expect(status).toBe(400)
    expect(body).toEqual({ error: 'invalid-deployment', detail: 'R.', field: 'region', faults })
    expect(outcomes).toEqual(['invalid-deployment'])
  })

  const rejections: readonly (readonly [outcome: CreateOutcome, status: number, retryAfter: string | null])[] = [
    [{ kind: 'subdomain-conflict' }, 409, null],
    [{ kind: 'bucket-conflict' }, 409, null],
    [{ kind: 'fqdn-conflict' }, 409, null],
    [{ kind: 'fqdn-remains', detail: 'Infrastructure remains.' }, 409, null],
    [{ kind: 'idempotency-key-reused' }, 422, null],
    [{ kind: 'provisioning-unavailable', detail: 'Terraform is not there.' }, 503, '5'],
    [{ kind: 'object-storage-unavailable', detail: 'It is away.', retryAfterSeconds: 30 }, 503, '30'],
  ]
  test.each(rejections.map(row => [row[0].kind, row] as const))('%s', async (kind, [outcome, status, retryAfter]) => {
    const answer = await createTestApp({ create: outcome }).call('POST', path, '{}')
    expect([answer.status, answer.body.error, answer.headers.get('retry-after')]).toEqual([status, kind, retryAfter])
    expect(answer.body.detail).toBe('detail' in outcome ? outcome.detail : answer.body.detail)
    expect(Object.keys(answer.body)).toEqual(['error', 'detail'])
  })

  test('an unavailable database is 503, with Retry-After', async () => {
    const { status, body, headers } = await createTestApp({ create: new Error('away') }).call('POST', path, '{}')
    expect([status, body.error]).toEqual([503, 'database-unavailable'])
    expect(headers.get('retry-after')).toMatch(/^[1-5]$/)
  })
})

describe('get, list and remove', () => {
  test('get', async () => {
    const { calls, call } = createTestApp({ get: { kind: 'found', deployment } })
    expect((await call('GET', `${path}/${id.toUpperCase()}`)).body).toEqual(deployment)
    expect(calls).toEqual([['get', id]])
    expect(await call('HEAD', `${path}/${id}`)).toMatchObject({ status: 200, text: '' })
  })

  test('a page with the cursor of the next one', async () => {
    const { calls, call } = createTestApp({ list: { items: [deployment], nextCursor: '17' } })
    const { body } = await call('GET', `${path}?status=failed&limit=1&cursor=${encodeCursor('42')}`)
    expect(body).toEqual({ deployments: [deployment], nextCursor: encodeCursor('17') })
    expect(calls).toEqual([['list', { status: 'failed', limit: 1, cursor: '42' }]])
  })

  test('the last page', async () => {
    const { calls, call } = createTestApp({ list: { items: [], nextCursor: undefined } })
    expect((await call('GET', path)).body).toEqual({ deployments: [] })
    expect(calls).toEqual([['list', {}]])
  })

  test('remove: 202 while it is being cancelled, 204 when it is deleted', async () => {
    const first = createTestApp({ remove: { kind: 'cancelling', deployment } })
    const cancelling = await first.call('DELETE', `${path}/${id}`, undefined, { 'X-Request-Id': 'r' })
    expect([cancelling.status, cancelling.body]).toEqual([202, deployment])
    expect(first.calls).toEqual([['remove', id, false, { caller: { ...caller, requestId: 'r' }, token: undefined }]])
    const removed = await createTestApp({ remove: { kind: 'removed' } }).call('DELETE', `${path}/${id}`)
    expect([removed.status, removed.text]).toEqual([204, ''])
  })

  test('remove with ?cancel=true only cancels', async () => {
    const { calls, call } = createTestApp({ cancel: { kind: 'cancelling', deployment } })
    for (const query of ['cancel=true', 'cancel=true&abandon=true']) {
      const { status, body } = await call('DELETE', `${path}/${id}?${query}`)
      expect([status, body]).toEqual([202, deployment])
    }
    expect(calls.map(([name]) => name)).toEqual(['cancel', 'cancel'])
    expect((await call('DELETE', `${path}/${id}?cancel=yes`)).status).toBe(422)
  })
})

const caller = { actor: 'in-cluster', address: null }

describe('apply, destroy, plan and remove', () => {
  test.each([
    ['apply', 'provisioning'],
    ['destroy', 'destroying'],
  ] as const)('%s: 202 with the location of the log; the service gets the body and the token', async (verb, status) => {
    const { calls, outcomes, call } = createTestApp({ [verb]: { kind: 'started', id, status } })
    const headers = { 'X-Deployment-Token': token, 'X-Request-Id': 'r' }
    const answer = await call('POST', `${path}/${id}/${verb}`, '{"any":["thing"]}', headers)
    expect([answer.status, answer.body]).toEqual([202, { id, status, streamURL: `${path}/${id}/logs` }])
    expect(calls).toEqual([[verb, id, { any: ['thing'] }, { caller: { ...caller, requestId: 'r' }, token }]])
    expect(outcomes).toEqual(['started'])
  })

  test('without a body, as for a deployment without object storage', async () => {
    const { calls, call } = createTestApp({ apply: { kind: 'started', id, status: 'provisioning' } })
    expect((await call('POST', `${path}/${id}/apply`)).status).toBe(202)
    expect(calls[0]?.[2]).toBeUndefined()
  })

  const late = { operation: 'apply' as const, text: 'Plan: 1 to add.', json: {}, planHash: 'a-hash' }
  test.each<readonly [PlanOutcome, object]>([
    [{ kind: 'planned', ...late }, late],
    [
      { kind: 'plan-failed', detail: 'No quota.' },
      {
        operation: 'apply',
        text: 'Error: No quota.\n',
        json: null,
        problem: { error: 'plan-failed', detail: 'No quota.' },
      },
    ],
  ])('plan: a slow one sends white space every 15 s, then %o', async (outcome, expected) => {
    vi.useFakeTimers({ toFake: ['setTimeout'] })
    onTestFinished(() => void vi.useRealTimers())
    const planning = Promise.withResolvers<PlanOutcome>()
    const { app, outcomes } = createAppWithFakeDeployments({ plan: () => planning.promise })
    const responding = sendRequest(app, `${path}/${id}/plan`, { method: 'POST' })
    await vi.advanceTimersByTimeAsync(15_000)
    const response = await responding
    const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader()
    expect(await reader?.read()).toEqual({ done: false, value: '\n' })
    const second = reader?.read()
    await vi.advanceTimersByTimeAsync(15_000)
    expect(await second).toEqual({ done: false, value: '\n' })
    planning.resolve(outcome)
    const { value: text = '' } = (await reader?.read()) ?? {}
    expect(await reader?.read()).toMatchObject({ done: true })
    expect(JSON.parse(text)).toEqual(expected)
    expectContract('POST', `${path}/${id}/plan`, {
      ...response,
      status: response.status,
      headers: response.headers,
      text,
    })
    expect(outcomes).toEqual(['planning'])
  })

  test('plan: 200 with text and JSON', async () => {
    const plan = {
      operation: 'destroy' as const,
      text: 'Plan: 1 to destroy.',
      json: { resource_changes: [] },
      planHash: 'a-hash',
    }
    const { calls, call } = createTestApp({ plan: { kind: 'planned', ...plan } })
    const { status, body } = await call('POST', `${path}/${id}/plan`, '{"operation":"destroy"}')
    expect([status, body]).toEqual([200, plan])
    expect(calls[0]?.slice(0, 3)).toEqual(['plan', id, { operation: 'destroy' }])
  })

  test.each<readonly [outcome: StartOutcome, status: number, detail: RegExp]>([
    [{ kind: 'not-found' }, 404, /No such deployment/],
    [{ kind: 'token-mismatch' }, 403, /X-Deployment-Token/],
    [{ kind: 'in-progress' }, 409, /in progress/],
    [{ kind: 'destroy-incomplete' }, 409, /destroy it again/],
    [{ kind: 'subdomain-conflict' }, 409, /taken/],
    [{ kind: 'bucket-conflict' }, 409, /bucket/],
    [{ kind: 'fqdn-conflict' }, 409, /FQDN/],
    [{ kind: 'fqdn-remains', detail: 'A bucket remains.' }, 409, /A bucket remains/],
    [{ kind: 'provisioning-unavailable', detail: 'Terraform is not there.' }, 503, /Terraform/],
  ])('$kind', async (outcome, status, detail) => {
    const isOnlyOfApply = /incomplete|conflict|remains/.test(outcome.kind)
    for (const verb of isOnlyOfApply ? ['apply'] : ['apply', 'destroy']) {
      const answer = await createTestApp({ [verb]: outcome }).call('POST', `${path}/${id}/${verb}`, '{}')
      expect([answer.status, answer.body.error]).toEqual([status, outcome.kind])
      expect(answer.body.detail).toMatch(detail)
    }
  })

  test('DELETE with ?abandon=true; 409 if the infrastructure is up', async () => {
    const detail = 'Its infrastructure exists.'
    const { calls, call } = createTestApp({ remove: { kind: 'still-up', detail } })
    const { status, body } = await call('DELETE', `${path}/${id}?abandon=true`)
    expect([status, body]).toEqual([409, { error: 'still-up', detail }])
    expect(calls[0]?.slice(0, 3)).toEqual(['remove', id, true])
    expect((await call('DELETE', `${path}/${id}?abandon=yes`)).status).toBe(422)
  })
})

describe('a deployment that does not exist', () => {
  const requests = [
    ['GET', ''],
    ['HEAD', ''],
    ['DELETE', ''],
    ['GET', '/logs'],
    ['HEAD', '/logs'],
    ['POST', '/apply'],
    ['POST', '/destroy'],
    ['POST', '/plan'],
  ] as const
  const none = { kind: 'not-found' } as const
  test.each(requests)('%s %s is 404', async (method, tail) => {
    const { calls, call } = createTestApp({
      get: none,
      remove: none,
      apply: none,
      destroy: none,
      plan: none,
      tailLog: none,
    })
    const answer = await call(method, `${path}/${id}${tail}`)
    expect([answer.status, calls.length]).toEqual([404, 1])
    if (method !== 'HEAD') expect(answer.body).toEqual({ error: 'not-found', detail: 'No such deployment.' })
  })

  const malformedIds = [
    'x',
    '1',
    '%00',
    '..%2f',
    id.slice(1),
    `${id}0`,
    id.replaceAll('-', ''),
    '%7B%7D',
    "'%20or%201=1",
  ]
  test.each(requests.flatMap(([method, tail]) => malformedIds.map(text => [method, text, tail] as const)))(
    '%s %s%s: the service is not called for an id that is not a UUID',
    async (method, text, tail) => {
      const { calls, call } = createTestApp({
        get: none,
        remove: none,
        apply: none,
        destroy: none,
        plan: none,
        tailLog: none,
      })
      expect((await call(method, `${path}/${text}${tail}`)).status).toBe(404)
      expect(calls).toEqual([])
    },
  )
})

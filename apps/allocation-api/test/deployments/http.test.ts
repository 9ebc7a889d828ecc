import { type Deployment, encodeCursor } from '@pool/contract'
import { describe, expect, test } from 'vitest'
import type { CreateOutcome } from '../../src/deployments/domain/types.ts'
import type { DeploymentVerbs } from '../../src/http/routes/deployments.ts'
import { createAppWithFakeDeployments } from '../support/fake-services-app.ts'
import { expectContract } from '../support/validate.ts'

const id = '0a000000-0000-4000-8000-00000000000b'
const path = '/api/v1/deployments'
const deployment: Deployment = {
  id,
  status: 'failed',
  startedAt: '2026-01-31T12:00:00.000Z',
  finishedAt: '2026-01-31T12:10:00.000Z',
  sovereignFQDN: 'acme.pool.test',
  region: 'fsn1',
  objectStorageRegion: 'fsn1',
  objectStorageBucket: 'catalyst-acme-pool-test',
  numEvents: 3,
  error: 'Cancelled.',
}

/** Verbs that answer as they are told, and what they were asked with; each answer is held against the contract. */
const stage = (answers: { [Verb in keyof DeploymentVerbs]?: Awaited<ReturnType<DeploymentVerbs[Verb]>> | Error }) => {
  const asked: unknown[][] = []
  const verbs = Object.entries(answers).map(([verb, answer]) => [
    verb,
    async (...given: unknown[]) => {
      asked.push([verb, ...given])
      if (answer instanceof Error) throw answer
      return answer
    },
  ])
  const { app, outcomes } = createAppWithFakeDeployments(Object.fromEntries(verbs))
  const call = async (method: string, where: string, body?: string, headers: Record<string, string> = {}) => {
    const response = await app.request(where, { method, headers, ...(body === undefined ? {} : { body }) })
    const answer = { status: response.status, headers: response.headers, text: await response.text() }
    expectContract(method, where, answer)
    return { ...answer, body: answer.text.startsWith('{') ? JSON.parse(answer.text) : undefined }
  }
  return { asked, outcomes, call }
}

describe('create', () => {
  test('201 says where it is and where its log is; the verb has the body as it came, the caller and the key', async () => {
    const { asked, outcomes, call } = stage({ create: { kind: 'created', id } })
    const { status, headers, body } = await call('POST', path, '{"any":["thing"]}', {
      'Idempotency-Key': 'k',
      'X-Request-Id': 'r',
    })
    expect([status, headers.get('location')]).toEqual([201, `${path}/${id}`])
    expect(body).toEqual({ id, status: 'provisioning', streamURL: `${path}/${id}/logs` })
    expect(asked).toEqual([['create', { any: ['thing'] }, { actor: 'in-cluster', address: null, requestId: 'r' }, 'k']])
    expect(outcomes).toEqual(['created'])
  })

  test('400 has every faulty field, and the first of them as field and detail', async () => {
    const faults = [
      { field: 'region', detail: 'R.' },
      { field: 'sshPublicKey', detail: 'S.' },
    ]
    const { call, outcomes } = stage({ create: { kind: 'invalid-deployment', faults } })
    const { status, body } = await call('POST', path, '{}')
    expect(status).toBe(400)
    expect(body).toEqual({ error: 'invalid-deployment', detail: 'R.', field: 'region', faults })
    expect(outcomes).toEqual(['invalid-deployment'])
  })

  const refused: readonly (readonly [outcome: CreateOutcome, status: number, retryAfter: string | null])[] = [
    [{ kind: 'subdomain-conflict' }, 409, null],
    [{ kind: 'bucket-conflict' }, 409, null],
    [{ kind: 'fqdn-conflict' }, 409, null],
    [{ kind: 'idempotency-key-reused' }, 422, null],
    [{ kind: 'provisioning-unavailable', detail: 'Terraform is not there.' }, 503, '5'],
    [{ kind: 'object-storage-unavailable', detail: 'It is away.', retryAfterSeconds: 30 }, 503, '30'],
  ]
  test.each(refused.map(row => [row[0].kind, row] as const))('%s', async (kind, [outcome, status, retryAfter]) => {
    const answer = await stage({ create: outcome }).call('POST', path, '{}')
    expect([answer.status, answer.body.error, answer.headers.get('retry-after')]).toEqual([status, kind, retryAfter])
    expect(answer.body.detail).toBe('detail' in outcome ? outcome.detail : answer.body.detail)
    expect(Object.keys(answer.body)).toEqual(['error', 'detail'])
  })

  test.each<readonly [code: string, status: number, body: string, headers: Record<string, string>]>([
    ['invalid-json', 400, '', {}],
    ['invalid-json', 400, '{', {}],
    ['invalid-idempotency-key', 400, '{}', { 'Idempotency-Key': 'a b' }],
    ['body-too-large', 413, `"${'a'.repeat(65_536)}"`, { 'Content-Length': '65538' }],
  ])('%s (%i) before the verb is asked', async (code, status, sent, headers) => {
    const { asked, call } = stage({ create: { kind: 'created', id } })
    const answer = await call('POST', path, sent, headers)
    expect([answer.status, answer.body.error, asked]).toEqual([status, code, []])
  })

  test('a database that is away is 503', async () => {
    const { status, body } = await stage({ create: new Error('away') }).call('POST', path, '{}')
    expect([status, body.error]).toEqual([503, 'database-unavailable'])
  })
})

describe('get, list and remove', () => {
  test('one', async () => {
    const { asked, call } = stage({ get: { kind: 'found', deployment } })
    expect((await call('GET', `${path}/${id.toUpperCase()}`)).body).toEqual(deployment)
    expect(asked).toEqual([['get', id]])
    expect(await call('HEAD', `${path}/${id}`)).toMatchObject({ status: 200, text: '' })
  })

  test('a page, whose cursor leads on', async () => {
    const { asked, call } = stage({ list: { deployments: [deployment], nextCursor: '17' } })
    const { body } = await call('GET', `${path}?status=failed&limit=1&cursor=${encodeCursor('42')}`)
    expect(body).toEqual({ deployments: [deployment], nextCursor: encodeCursor('17') })
    expect(asked).toEqual([['list', { status: 'failed', limit: 1, cursor: '42' }]])
  })

  test('the last page', async () => {
    const { asked, call } = stage({ list: { deployments: [] } })
    expect((await call('GET', path)).body).toEqual({ deployments: [] })
    expect(asked).toEqual([['list', {}]])
  })

  test.each([
    ['status=done', 'invalid-state'],
    ['limit=0', 'invalid-limit'],
    ['cursor=held', 'invalid-cursor'],
  ])('?%s is %s', async (query, code) => {
    const { status, body } = await stage({ list: { deployments: [] } }).call('GET', `${path}?${query}`)
    expect([status, body.error]).toEqual([422, code])
  })

  test('remove: 202 while it is being cancelled, 204 when it is gone', async () => {
    const first = stage({ remove: { kind: 'cancelling', deployment } })
    const cancelling = await first.call('DELETE', `${path}/${id}`, undefined, { 'X-Request-Id': 'r' })
    expect([cancelling.status, cancelling.body]).toEqual([202, deployment])
    expect(first.asked).toEqual([['remove', id]])
    const removed = await stage({ remove: { kind: 'removed' } }).call('DELETE', `${path}/${id}`)
    expect([removed.status, removed.text]).toEqual([204, ''])
  })
})

describe('a deployment that is not there', () => {
  const calls = [
    ['GET', ''],
    ['HEAD', ''],
    ['DELETE', ''],
    ['GET', '/logs'],
    ['HEAD', '/logs'],
  ] as const
  const none = { kind: 'not-found' } as const
  test.each(calls)('%s %s is 404', async (method, tail) => {
    const { asked, call } = stage({ get: none, remove: none, tailLog: none })
    const answer = await call(method, `${path}/${id}${tail}`)
    expect([answer.status, asked.length]).toEqual([404, 1])
    if (method !== 'HEAD') expect(answer.body).toEqual({ error: 'not-found', detail: 'There is no such deployment.' })
  })

  const strange = ['x', '1', '%00', '..%2f', id.slice(1), `${id}0`, id.replaceAll('-', ''), '%7B%7D', "'%20or%201=1"]
  test.each(calls.flatMap(([method, tail]) => strange.map(one => [method, one, tail] as const)))(
    '%s %s%s: nobody is asked for what is no UUID',
    async (method, one, tail) => {
      const { asked, call } = stage({ get: none, remove: none, tailLog: none })
      expect((await call(method, `${path}/${one}${tail}`)).status).toBe(404)
      expect(asked).toEqual([])
    },
  )
})

test.each([
  ['PUT', path, 'GET, HEAD, POST'],
  ['DELETE', path, 'GET, HEAD, POST'],
  ['OPTIONS', path, 'GET, HEAD, POST'],
  ['POST', `${path}/${id}`, 'DELETE, GET, HEAD'],
  ['POST', `${path}/${id}/logs`, 'GET, HEAD'],
])('%s %s is 405 and says what there is', async (method, where, allow) => {
  const { status, headers } = await stage({}).call(method, where)
  expect([status, headers.get('allow')]).toEqual([405, allow])
})

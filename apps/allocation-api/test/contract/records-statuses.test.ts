import type { ErrorCode } from '@pool/contract'
import { expect, test } from 'vitest'
import { createApp } from '../../src/http/app.ts'
import type { ChangeOutcome, RefusalKind, SetChange, TenantRecords } from '../../src/records/domain/types.ts'
import { sendRequest, unusedDependencies } from '../support/fake-services-app.ts'
import { challenge, unknownRecordsToken } from '../support/tenant-records.ts'
import { expectContract } from '../support/validate.ts'

const kinds: Readonly<Record<RefusalKind, number>> = {
  'outside-scope': 403,
  'not-active': 409,
  'record-conflict': 409,
  'template-record': 409,
  delegated: 409,
  'invalid-record': 422,
  'type-not-allowed': 422,
  'too-many-records': 422,
}
const change: SetChange = { kind: 'delete', name: 'x', type: 'A' }
const dns = { status: 'pending' } as const

/** Each outcome of a change, with the code and the status of the response. */
const outcomes: readonly (readonly [what: string, outcome: ChangeOutcome, code: ErrorCode | null, status: number])[] = [
  ['unauthorized', { kind: 'unauthorized' }, 'unauthorized', 401],
  ['rate-limited', { kind: 'rate-limited', retryAfterSeconds: 7 }, 'rate-limited', 429],
  ...(Object.entries(kinds) as [RefusalKind, number][]).flatMap(([kind, status]) => {
    const refusals = [{ kind, detail: 'No.', change }] as const
    return [
      [kind, { kind: 'refused', refusals }, kind, status] as const,
      [`others but for ${kind}`, { kind: 'changed', refusals, dns }, kind, status] as const,
    ]
  }),
  ['published', { kind: 'changed', refusals: [], dns: { status: 'published' } }, null, 200],
  ['pending', { kind: 'changed', refusals: [], dns }, 'dns-pending', 503],
  ['failing', { kind: 'changed', refusals: [], dns: { status: 'failing', detail: 'It is away.' } }, 'dns-pending', 503],
]

const set = { name: 'a.acme.pool.test', type: 'A', ttl: 60, values: ['192.0.2.1'], owner: 'default', isPublished: true }
const requests: readonly (readonly [
  method: string,
  path: string,
  body: object | null,
  success: number,
  waits: boolean,
])[] = [
  ['PUT', '/a.acme.pool.test/A', { values: ['192.0.2.1'] }, 200, true],
  ['DELETE', '/a.acme.pool.test/A', null, 204, false],
  ['POST', '/httpreq/present', { fqdn: 'x', value: challenge('a') }, 200, true],
  ['POST', '/httpreq/cleanup', { domain: 'x', keyAuth: 'y' }, 200, false],
  ['POST', '/acme-dns/update', { subdomain: 'x', txt: challenge('a') }, 200, true],
  ['POST', '/external-dns/records', {}, 204, false],
]

const send = (outcome: ChangeOutcome, method: string, path: string, body: object | null) => {
  const options: unknown[] = []
  const records: Partial<TenantRecords> = {
    change: async (_digest, _changes, change) => {
      options.push(change)
      return outcome
    },
    read: async () => ({
      kind: 'read',
      name: { poolDomain: 'pool.test', subdomain: 'acme' },
      fqdn: 'acme.pool.test',
      scope: 'records',
      owner: 'default',
      state: 'active',
      sets: [set],
      dns: { status: 'published' },
    }),
  }
  const app = createApp(
    {
      ...unusedDependencies,
      records: { ...unusedDependencies.records, ...records },
      observer: { ...unusedDependencies.observer, onRequest: () => {} },
    },
    { listener: 'in-cluster', tokens: null, exposeLists: true },
  )
  const headers = { Authorization: `Bearer ${unknownRecordsToken}` }
  const init = { method, headers, ...(body && { body: JSON.stringify(body) }) }
  return sendRequest(app, `/api/v1/records${path}`, init).then(async response => ({
    status: response.status,
    headers: response.headers,
    text: await response.text(),
    options,
  }))
}

/** Rules of record sets, which a challenge cannot break. */
const ofSets: readonly (ErrorCode | null)[] = ['template-record', 'type-not-allowed']
const cells = requests.flatMap(request =>
  outcomes
    .filter(([, , code]) => !ofSets.includes(code) || !/httpreq|acme-dns/.test(request[1]))
    .map(outcome => [request[0], request[1], outcome[0], request, outcome] as const),
)

test.each(cells)('%s %s: %s', async (method, path, _, [, , body, success, waits], [, outcome, code, status]) => {
  const answer = await send(outcome, method, path, body)
  expectContract(method, `/api/v1/records${path}`, answer)
  const isForExternalDns = path.startsWith('/external-dns')
  expect(answer.options).toEqual([{ mode: isForExternalDns ? 'each' : 'all', waitMs: waits ? 20_000 : null }])
  if (code === null || (code === 'dns-pending' && !waits)) {
    expect(answer.status).toBe(success)
    return
  }
  expect(JSON.parse(answer.text).error).toBe(code)
  expect(answer.status).toBe(isForExternalDns && [409, 422, 429].includes(status) ? 503 : status)
  expect(answer.headers.get('retry-after')).toBe({ 'rate-limited': '7', 'dns-pending': '5' }[code as string] ?? null)
  expect(answer.headers.get('www-authenticate')).toBe(code === 'unauthorized' ? 'Bearer' : null)
})

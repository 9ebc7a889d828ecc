import { HttpResponse } from '@pool/test-kit/http1.ts'
import { expect, test } from 'vitest'
import { createTenantLedger, toTenantMark } from '../../src/fuzz/oracle/tenants.ts'

const ID = 'a3bb189e-8bf9-4c1a-9f3e-0123456789ab'
const OTHER_ID = 'b3bb189e-8bf9-4c1a-9f3e-0123456789ab'
const TOKEN = 'c3bb189e-8bf9-4c1a-9f3e-0123456789ab'
const [A, B] = [1, 2]

type Call = readonly [tenant: number, method: string, target: string, status: number, response: unknown, body?: unknown]

const deployments = '/api/v1/deployments'
const commit = '/api/v1/pool/pool.test/commit'
const created = (tenant: number, id: string): Call => [
  tenant,
  'POST',
  deployments,
  201,
  { id, deploymentToken: crypto.randomUUID() },
]
const reserved: Call = [A, 'POST', '/api/v1/pool/pool.test/reserve', 201, { subdomain: 'a', reservationToken: TOKEN }]

const check = (calls: readonly Call[], row = 'any'): string[] => {
  const ledger = createTenantLedger()
  return calls.flatMap(([tenant, method, target, status, response, body]) => {
    const text = typeof response === 'string' ? response : JSON.stringify(response)
    return ledger.check({
      request: { row, tenant, method, target, headers: [], body: Buffer.from(JSON.stringify(body ?? '')) },
      outcome: { kind: 'response', extraBytes: 0, response: new HttpResponse(status, '', Buffer.from(text), false) },
      sentAt: 0,
      answeredAt: 1,
    })
  })
}

const name = 'another tenant: its name or its resources'
const identity = 'another tenant: its deployment or its token'

test.each<readonly [string, readonly Call[], readonly string[]]>([
  ['the own name', [created(A, ID), [A, 'GET', `${deployments}/${ID}`, 200, { orgName: toTenantMark(A) }]], []],
  [
    'a log line',
    [created(A, ID), [A, 'GET', `${deployments}/${ID}/logs`, 200, `data: Kept ${toTenantMark(B)}`]],
    [name],
  ],
  ['a plan', [created(A, ID), [A, 'POST', `${deployments}/${ID}/plan`, 200, { text: toTenantMark(B) }]], [name]],
  ['a rejected creation', [[A, 'POST', deployments, 409, { detail: `of ${toTenantMark(B)}` }]], [name]],
  [
    'a deployment',
    [created(A, ID), created(B, OTHER_ID), [A, 'DELETE', `${deployments}/${ID}`, 409, { detail: OTHER_ID }]],
    [identity],
  ],
  [
    'the deployment of another client',
    [created(B, ID), [A, 'GET', `${deployments}/${ID}`, 200, { orgName: toTenantMark(B) }]],
    [],
  ],
  ['a list', [created(A, ID), [A, 'GET', deployments, 200, { orgName: toTenantMark(B) }]], []],
  [
    'an own name',
    [reserved, [A, 'POST', commit, 200, { createdBy: toTenantMark(B) }, { reservationToken: TOKEN }]],
    [name],
  ],
  [
    'the token of another client',
    [reserved, [B, 'POST', commit, 200, { createdBy: toTenantMark(A) }, { reservationToken: TOKEN }]],
    [],
  ],
])('%s', (_, calls, violations) => {
  expect(check(calls)).toEqual(violations)
})

test('a mutated path can be that of any operation', () => {
  expect(check([created(A, ID), [A, 'GET', `${deployments}/${ID}`, 200, toTenantMark(B)]], 'paths')).toEqual([])
})

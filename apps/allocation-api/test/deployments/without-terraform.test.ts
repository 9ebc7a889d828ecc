import { deploymentRequest } from '@pool/test-kit/deployment-request.ts'
import { expect, test } from 'vitest'
import { createContractCall, startTestService } from '../support/service.ts'

/** A path that does not exist, because Terraform may be installed on this machine. */
const binary = '/nowhere/terraform'
const { api, call, database } = await startTestService({
  PDM_TERRAFORM_BINARY: binary,
  PDM_OPERATOR_TOKENS: 'operator',
})

const request = deploymentRequest('acme')

test('without the binary a deployment is 503 with the missing prerequisite, and nothing is stored', async () => {
  const answer = await call('POST', '/api/v1/deployments', request)
  expect(answer.status).toBe(503)
  expect(answer.headers.get('retry-after')).toMatch(/^\d+$/)
  expect(answer.body).toEqual({
    error: 'provisioning-unavailable',
    detail: expect.stringMatching(/PDM_TERRAFORM_BINARY is \/nowhere\/terraform, .* install Terraform/),
  })
  expect(await database.sql`select from pool_allocations`).toHaveLength(0)
  expect(await database.sql`select from deployments`).toHaveLength(0)
})

test('an invalid request is reported before missing prerequisites', async () => {
  const answer = await call('POST', '/api/v1/deployments', { ...request, region: '', orgEmail: 'nobody' })
  expect(answer.status).toBe(400)
  expect(answer.body.faults.map(({ field }: { field: string }) => field)).toEqual(['orgEmail', 'region'])
  expect(answer.body.field).toBe('orgEmail')
})

test("the operator's address has deployments too, behind its token", async () => {
  const operator = createContractCall(api.operatorUrl ?? '')
  expect((await operator('GET', '/api/v1/deployments')).status).toBe(401)
  const answer = await operator('GET', '/api/v1/deployments', undefined, { Authorization: 'Bearer operator' })
  expect([answer.status, answer.body]).toEqual([200, { deployments: [] }])
})

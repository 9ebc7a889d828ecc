import { chmod, mkdtemp, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { deploymentRequest } from '@pool/test-kit/deployment-request.ts'
import { until } from '@pool/test-kit/poll.ts'
import { startApi } from '@pool/test-kit/services.ts'
import { expect, onTestFinished, test } from 'vitest'
import { createTestDatabase } from '../support/database.ts'
import { createContractCall, startTestService } from '../support/service.ts'

test('a start without Terraform logs what is missing for deployments, and serves everything else', async () => {
  const database = await createTestDatabase()
  onTestFinished(() => database.drop())
  const api = await startApi(database.url, { PDM_TERRAFORM_BINARY: '/nowhere/terraform' })
  onTestFinished(async () => void (await api.process.stop()))
  const line = await until('the log has the line', () =>
    api.lines.find(text => text.includes('deployments unavailable')),
  )
  expect(JSON.parse(line)).toMatchObject({
    level: 'warn',
    reason: expect.stringContaining('PDM_TERRAFORM_BINARY is /nowhere/terraform'),
  })
  expect((await api.call('GET', '/api/v1/pool/pool.test/check?sub=acme')).status).toBe(200)
})

test('a signal to the process group while Terraform reports its version stops the service without a warning', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'hanging-terraform-'))
  onTestFinished(() => rm(folder, { recursive: true }))
  const binary = join(folder, 'terraform')
  await writeFile(binary, '#!/bin/sh\n: > "$0.started"\nexec sleep 1000\n')
  await chmod(binary, 0o755)
  const database = await createTestDatabase()
  onTestFinished(() => database.drop())
  const api = await startApi(database.url, { PDM_TERRAFORM_BINARY: binary })
  onTestFinished(async () => void (await api.process.kill()))
  await until('the binary runs', () =>
    stat(`${binary}.started`).then(
      () => true,
      () => false,
    ),
  )
  process.kill(-api.process.pid, 'SIGTERM')
  expect(await api.process.exited).toEqual({ code: 0, signal: null })
  expect(api.lines.join('\n')).not.toMatch(/deployments unavailable|checks at the start failed/)
})

/** A path that does not exist, because Terraform may be installed on this machine. */
const binary = '/nowhere/terraform'
const { api, call, database } = await startTestService({
  PDM_TERRAFORM_BINARY: binary,
  PDM_OPERATOR_TOKENS: 'operator-token-of-tests',
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
  const answer = await operator('GET', '/api/v1/deployments', undefined, {
    Authorization: 'Bearer operator-token-of-tests',
  })
  expect([answer.status, answer.body]).toEqual([200, { deployments: [] }])
})

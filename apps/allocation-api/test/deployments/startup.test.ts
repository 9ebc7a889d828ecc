import { until } from '@pool/test-kit/poll.ts'
import { expect, onTestFinished, test } from 'vitest'
import { startApi } from '../support/api.ts'
import { createTestDatabase } from '../support/database.ts'

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

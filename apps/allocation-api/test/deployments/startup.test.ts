import { chmod, mkdtemp, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { until } from '@pool/test-kit/poll.ts'
import { startApi } from '@pool/test-kit/services.ts'
import { expect, onTestFinished, test } from 'vitest'
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

import { expect, test } from 'vitest'
import { checkDeployments, checkFreeSpace } from './machine.ts'

const GIBIBYTE = 1_073_741_824

test('less than 1 GiB of free space is a problem, also where the folder does not exist yet', async () => {
  const folder = '/no-such-folder/below'
  expect(await checkFreeSpace(folder, async () => GIBIBYTE)).toMatchObject({ state: 'good' })
  expect(await checkFreeSpace(folder, async () => GIBIBYTE - 1)).toMatchObject({
    state: 'bad',
    text: '1023 MiB are free at /',
    advice: expect.stringContaining('PDM_DEPLOYMENTS_DIR'),
  })
})

const settings = {
  binary: null,
  dataDir: '/tmp',
  moduleDir: null,
  backend: null,
  timeoutMs: 1_000,
  passthrough: [],
}
const check = async (env: Record<string, string>, backend: { type: string; settings: object } | null = null) => {
  const prerequisites = {
    checkBinary: async () => 'There is none: install it.',
    checkModule: async () => null,
    describeLimits: async () => null,
  }
  const findings = await checkDeployments({ ...settings, backend } as typeof settings, prerequisites, env)
  return findings.filter(({ check: name }) => name !== 'free space')
}

test('without Terraform, deployments are off, unless a variable shows that they are wanted', async () => {
  expect(await check({ PDM_TERRAFORM_MODULE: ' ' })).toMatchObject([{ check: 'deployments', state: 'not-checked' }])
  expect(await check({ PDM_DEPLOYMENTS_DIR: '/tmp' })).toContainEqual({
    check: 'terraform binary',
    state: 'bad',
    text: 'There is none',
    advice: 'install it',
  })
})

test('a remote backend is not checked', async () => {
  const findings = await check({ PDM_TERRAFORM_MODULE: '/m' }, { type: 's3', settings: {} })
  expect(findings).toContainEqual(expect.objectContaining({ check: 'terraform backend', state: 'not-checked' }))
})

import { expect, test } from 'vitest'
import type { TerraformSettings } from '../config/terraform.ts'
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

const settings: TerraformSettings = {
  binary: null,
  dataDir: '/tmp',
  moduleDir: null,
  backend: null,
  timeoutMs: 1_000,
  stopTimeoutMs: 1_000,
  passthrough: [],
  isolation: 'auto',
  runner: null,
  visiblePaths: [],
}
const exposure = 'Terraform is not isolated, so a module can read all; review it.'
const check = async (
  env: Record<string, string>,
  {
    isExposed = false,
    ...more
  }: Partial<Pick<TerraformSettings, 'backend' | 'isolation'>> & { isExposed?: boolean } = {},
) => {
  const prerequisites = {
    checkBinary: async () => 'There is none: install it.',
    checkModule: async () => null,
    describeLimits: async () => null,
  }
  const findings = await checkDeployments({ ...settings, ...more }, prerequisites, env, async () =>
    isExposed ? exposure : null,
  )
  return findings.filter(({ check: name }) => name !== 'free space')
}

test('without Terraform, deployments are off, unless a variable shows that they are wanted', async () => {
  // The unit of systemd and the chart set the folder.
  for (const env of [{ PDM_TERRAFORM_MODULE: ' ' }, { PDM_DEPLOYMENTS_DIR: '/var/lib/allocation-api/deployments' }])
    expect(await check(env)).toMatchObject([{ check: 'deployments', state: 'not-checked' }])
  expect(await check({ PDM_DEPLOYMENT_CONCURRENCY: '4' })).toContainEqual({
    check: 'terraform binary',
    state: 'bad',
    text: 'There is none',
    advice: 'install it',
  })
})

test('a remote backend is not checked', async () => {
  const findings = await check({ PDM_TERRAFORM_MODULE: '/m' }, { backend: { type: 's3', settings: {} } })
  expect(findings).toContainEqual(expect.objectContaining({ check: 'terraform backend', state: 'not-checked' }))
})

test.each([
  ['good', 'auto', false],
  ['not-checked', 'auto', true],
  ['not-checked', 'off', true],
  ['bad', 'required', true],
] as const)('isolation is %s with PDM_TERRAFORM_ISOLATION=%s, exposed: %s', async (state, isolation, isExposed) => {
  const findings = await check({ PDM_TERRAFORM_MODULE: '/m' }, { isolation, isExposed })
  expect(findings.find(({ check: name }) => name === 'terraform isolation')).toMatchObject({
    state,
    ...(isExposed && { advice: 'review it' }),
  })
})

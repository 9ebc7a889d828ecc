import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { missingPrograms } from '@pool/test-kit/kubernetes/programs.ts'
import { shouldSkip } from '@pool/test-kit/optional-deps.ts'
import { describe, expect, test } from 'vitest'
import { OWN_VARIABLES } from '../../packages/testing/src/host/variables.ts'
import { root } from './support/chart.ts'
import { renderHardenedEnv } from './support/pod.ts'

describe.skipIf(shouldSkip(missingPrograms))('the hardened installation', () => {
  test('the client and the examples work with the variables that the chart renders', async () => {
    const env = await renderHardenedEnv('api')
    expect(env.PDM_RELEASE_TOKEN).toBe('required')
    // The tests start the API with addresses, a database and a token of their own.
    const others = Object.entries(env).filter(([name]) => !(name in OWN_VARIABLES['allocation-api']))
    const variables = JSON.stringify(Object.fromEntries(others))
    const suites = ['packages/client/test/service.ci.test.ts', 'tests/examples/examples.ci.test.ts']
    const { stdout } = await promisify(execFile)(
      process.execPath,
      [join(root, 'node_modules/vitest/vitest.mjs'), 'run', '--config', 'vitest.workspace.ts', ...suites],
      {
        cwd: root,
        env: { ...process.env, TEST_TIER: 'ci', NO_COLOR: '1', HARDENED_API_ENV: variables },
        maxBuffer: 2 ** 26,
      },
    ).catch(({ stdout: output }) => ({ stdout: `failed: ${output}` }))
    expect(stdout).toMatch(/^(?!failed)[\s\S]*Test Files +2 passed/)
  })
})

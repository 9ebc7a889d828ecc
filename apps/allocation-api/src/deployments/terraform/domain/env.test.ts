import { expect, test } from 'vitest'
import { isDenied } from '../../../config/terraform.ts'
import { findEnvSecrets, toTerraformEnv } from './env.ts'

test.each([
  ...['TF_LOG', 'TF_LOG_PATH', 'TF_LOG_PROVIDER', 'tf_log', 'TF_VAR_region', 'TF_CLI_ARGS', 'TF_CLI_ARGS_apply'],
  ...['TF_DATA_DIR', 'TF_WORKSPACE', 'TF_INPUT', 'PDM_DATABASE_URL', 'DNSPROVIDER_KIND'],
])('%s is never inherited', name => {
  expect(isDenied(name)).toBe(true)
  const given = toTerraformEnv({ [name]: 'x' }, [name], {})
  expect(given[name]).not.toBe('x')
})

test('the environment of a command: what is listed, and the values of the variables', () => {
  const env = { PATH: '/bin', HOME: '/h', https_proxy: 'http://p', AWS_PROFILE: 'a', OTHER: 'o', PDM_X: 'p', EMPTY: '' }
  expect(toTerraformEnv(env, ['AWS_PROFILE', 'ABSENT', 'EMPTY'], { a: '1', k: 's' })).toEqual({
    PATH: '/bin',
    HOME: '/h',
    https_proxy: 'http://p',
    AWS_PROFILE: 'a',
    EMPTY: '',
    CHECKPOINT_DISABLE: '1',
    TF_IN_AUTOMATION: '1',
    TF_INPUT: '0',
    TF_VAR_a: '1',
    TF_VAR_k: 's',
  })
})

test('secrets of the environment: passed variables, and passwords of proxies', () => {
  const env = { HTTPS_PROXY: 'http://u:p%40ssword@proxy:1', http_proxy: 'proxy:1', KEY: 'a-long-key', FLAG: 'true' }
  expect(findEnvSecrets(env, ['KEY', 'FLAG', 'ABSENT'])).toEqual(['p%40ssword', 'p@ssword', 'a-long-key'])
  expect(findEnvSecrets({ all_proxy: 'http://u:%E0%A4@p' }, [])).toEqual(['%E0%A4', '%E0%A4'])
})

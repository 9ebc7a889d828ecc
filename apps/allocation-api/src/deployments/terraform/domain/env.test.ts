import { expect, test } from 'vitest'
import { EnvReader } from '../../../config/env.ts'
import { readTerraform } from '../../../config/terraform.ts'
import { environmentOf, isBarred, secretsIn } from './env.ts'

test.each([
  ...['TF_LOG', 'TF_LOG_PATH', 'TF_LOG_PROVIDER', 'tf_log', 'TF_VAR_region', 'TF_CLI_ARGS', 'TF_CLI_ARGS_apply'],
  ...['TF_DATA_DIR', 'TF_WORKSPACE', 'TF_INPUT', 'PDM_DATABASE_URL', 'DNSPROVIDER_KIND'],
])('%s is never passed', name => {
  expect(isBarred(name)).toBe(true)
  const given = environmentOf({ [name]: 'x' }, [name], {})
  expect(given[name]).not.toBe('x')
})

test('the environment of a making: what is named, and the values of the variables', () => {
  const env = { PATH: '/bin', HOME: '/h', https_proxy: 'http://p', AWS_PROFILE: 'a', OTHER: 'o', PDM_X: 'p', EMPTY: '' }
  expect(environmentOf(env, ['AWS_PROFILE', 'ABSENT', 'EMPTY'], { a: '1', k: 's' })).toEqual({
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

test('secrets of the environment: what is passed on demand, and passwords of proxies', () => {
  const env = { HTTPS_PROXY: 'http://u:p%40ssword@proxy:1', http_proxy: 'proxy:1', KEY: 'a-long-key', FLAG: 'true' }
  expect(secretsIn(env, ['KEY', 'FLAG', 'ABSENT'])).toEqual(['p%40ssword', 'p@ssword', 'a-long-key'])
  expect(secretsIn({ all_proxy: 'http://u:%E0%A4@p' }, [])).toEqual(['%E0%A4', '%E0%A4'])
})

const read = (env: Record<string, string>) => {
  const reader = new EnvReader(env)
  return { settings: readTerraform(reader), faults: reader.faults }
}
const faultsOf = (variable: string, value: string) => read({ [variable]: value }).faults.map(fault => fault.detail)
const backend = (value: object) => JSON.stringify(value)

test('every setting has a default, and can be set', () => {
  expect(read({})).toEqual({
    settings: {
      binary: null,
      folder: '.data/deployments',
      moduleFolder: null,
      backend: null,
      timeoutMs: 1_800_000,
      passed: [],
    },
    faults: [],
  })
  const s3 = { bucket: 'b', key: '{deployment}/terraform.tfstate', endpoints: { s3: 'https://s3.test' } }
  expect(
    read({
      PDM_TERRAFORM_BINARY: '/opt/tofu',
      PDM_DEPLOYMENTS_DIR: '/var/lib/d',
      PDM_TERRAFORM_MODULE: '/m',
      PDM_TERRAFORM_BACKEND: backend({ s3 }),
      PDM_DEPLOYMENT_TIMEOUT: '90s',
      PDM_TERRAFORM_PASS_ENV: 'AWS_PROFILE, HCLOUD_TOKEN AWS_PROFILE',
    }),
  ).toEqual({
    settings: {
      binary: '/opt/tofu',
      folder: '/var/lib/d',
      moduleFolder: '/m',
      backend: { type: 's3', settings: s3 },
      timeoutMs: 90_000,
      passed: ['AWS_PROFILE', 'HCLOUD_TOKEN'],
    },
    faults: [],
  })
})

const form = /^must be JSON of one backend/
test.each<readonly [variable: string, value: string, detail: RegExp]>([
  ['PDM_TERRAFORM_BACKEND', 's3', form],
  ['PDM_TERRAFORM_BACKEND', '[]', form],
  ['PDM_TERRAFORM_BACKEND', '{}', form],
  ['PDM_TERRAFORM_BACKEND', '{"s3":"{deployment}"}', form],
  ['PDM_TERRAFORM_BACKEND', '{"s3":{"key":"{deployment}"},"gcs":{}}', form],
  ['PDM_TERRAFORM_BACKEND', '{"S 3":{"key":"{deployment}"}}', form],
  ['PDM_TERRAFORM_BACKEND', backend({ s3: { key: 'k' } }), /must hold \{deployment\}/],
  ['PDM_TERRAFORM_BACKEND', backend({ s3: { key: '{deployment}', secret_key: 'mark' } }), /must not hold "secret_key"/],
  ['PDM_TERRAFORM_BACKEND', backend({ x: { a: { password: 'mark' }, b: '{deployment}' } }), /must not hold "password"/],
  ['PDM_TERRAFORM_BACKEND', backend({ local: { path: '{deployment}.tfstate' } }), /must name an absolute path/],
  ['PDM_TERRAFORM_BACKEND', backend({ local: { workspace_dir: '/{deployment}' } }), /must name an absolute path/],
  ['PDM_TERRAFORM_PASS_ENV', 'HCLOUD_TOKEN=mark', /must hold names of variables/],
  ['PDM_TERRAFORM_PASS_ENV', 'A TF_LOG', /must not hold TF_LOG/],
  ['PDM_TERRAFORM_PASS_ENV', 'PDM_DATABASE_URL', /must not hold PDM_DATABASE_URL/],
  ['PDM_DEPLOYMENT_TIMEOUT', '0s', /must be a duration/],
])('%s: %s is a fault that quotes no secret', (variable, value, detail) => {
  const faults = faultsOf(variable, value)
  expect(faults).toEqual([expect.stringMatching(detail)])
  expect(faults.join()).not.toContain('mark')
})

import { EnvReader } from '@pool/runtime/service/env'
import { describe, expect, test } from 'vitest'
import { findCredentials, findEnvSecrets, isCredential, isDenied, readTerraform, toTerraformEnv } from './terraform.ts'

const read = (env: Record<string, string>) => {
  const reader = new EnvReader(env)
  return { settings: readTerraform(reader), issues: reader.issues }
}
const getIssues = (variable: string, value: string) => read({ [variable]: value }).issues.map(issue => issue.detail)
const backend = (value: object) => JSON.stringify(value)

test('every setting has a default and can be set', () => {
  expect(read({})).toEqual({
    settings: {
      binary: null,
      dataDir: '.data/deployments',
      moduleDir: null,
      backend: null,
      timeoutMs: 1_800_000,
      stopTimeoutMs: 600_000,
      passthrough: [],
      isolation: 'auto',
      runner: null,
      visiblePaths: [],
    },
    issues: [],
  })
  const s3 = { bucket: 'b', key: '{deployment}/terraform.tfstate', endpoints: { s3: 'https://s3.test' } }
  expect(
    read({
      PDM_TERRAFORM_BINARY: '/opt/tofu',
      PDM_DEPLOYMENTS_DIR: '/var/lib/d',
      PDM_TERRAFORM_MODULE: '/m',
      PDM_TERRAFORM_BACKEND: backend({ s3 }),
      PDM_DEPLOYMENT_TIMEOUT: '90s',
      PDM_TERRAFORM_STOP_TIMEOUT: '20m',
      PDM_TERRAFORM_PASS_ENV: 'AWS_PROFILE, HCLOUD_TOKEN AWS_PROFILE',
      PDM_TERRAFORM_ISOLATION: 'required',
      PDM_TERRAFORM_PATHS: '/mirror /home/u/.ssh',
      PDM_TERRAFORM_RUNNER: '/run/terraform.sock',
    }),
  ).toEqual({
    settings: {
      binary: '/opt/tofu',
      dataDir: '/var/lib/d',
      moduleDir: '/m',
      backend: { type: 's3', settings: s3 },
      timeoutMs: 90_000,
      stopTimeoutMs: 1_200_000,
      passthrough: ['AWS_PROFILE', 'HCLOUD_TOKEN'],
      isolation: 'required',
      runner: '/run/terraform.sock',
      visiblePaths: ['/mirror', '/home/u/.ssh'],
    },
    issues: [],
  })
})

const form = /^must be a JSON object with one backend/
test.each<readonly [variable: string, value: string, detail: RegExp]>([
  ['PDM_TERRAFORM_PATHS', '/mirror ~/.ssh', /must list absolute paths/],
  ['PDM_TERRAFORM_BACKEND', 's3', form],
  ['PDM_TERRAFORM_BACKEND', '[]', form],
  ['PDM_TERRAFORM_BACKEND', '{}', form],
  ['PDM_TERRAFORM_BACKEND', '{"s3":"{deployment}"}', form],
  ['PDM_TERRAFORM_BACKEND', '{"s3":{"key":"{deployment}"},"gcs":{}}', form],
  ['PDM_TERRAFORM_BACKEND', '{"S 3":{"key":"{deployment}"}}', form],
  ['PDM_TERRAFORM_BACKEND', backend({ s3: { key: 'k' } }), /must contain \{deployment\}/],
  [
    'PDM_TERRAFORM_BACKEND',
    backend({ s3: { key: '{deployment}', secret_key: 'mark' } }),
    /must not contain "secret_key"/,
  ],
  [
    'PDM_TERRAFORM_BACKEND',
    backend({ x: { a: { password: 'mark' }, b: '{deployment}' } }),
    /must not contain "password"/,
  ],
  ['PDM_TERRAFORM_BACKEND', backend({ local: { path: '{deployment}.tfstate' } }), /must have an absolute path/],
  ['PDM_TERRAFORM_BACKEND', backend({ local: { workspace_dir: '/{deployment}' } }), /must have an absolute path/],
  ['PDM_TERRAFORM_PASS_ENV', 'HCLOUD_TOKEN=mark', /must list names of variables/],
  ['PDM_TERRAFORM_PASS_ENV', 'A TF_LOG', /must not list TF_LOG/],
  ['PDM_TERRAFORM_PASS_ENV', 'PDM_DATABASE_URL', /must not list PDM_DATABASE_URL/],
  ['PDM_DEPLOYMENT_TIMEOUT', '0s', /must be a duration/],
])('%s: %s is rejected without quoting a secret', (variable, value, detail) => {
  const issues = getIssues(variable, value)
  expect(issues).toEqual([expect.stringMatching(detail)])
  expect(issues.join()).not.toContain('mark')
})

test.each([
  ...['TF_LOG', 'TF_LOG_PATH', 'TF_LOG_PROVIDER', 'tf_log', 'TF_VAR_region', 'TF_CLI_ARGS', 'TF_CLI_ARGS_apply'],
  ...['TF_DATA_DIR', 'TF_WORKSPACE', 'TF_INPUT', 'PDM_DATABASE_URL', 'DNSPROVIDER_KIND'],
])('%s is never inherited', name => {
  expect(isDenied(name)).toBe(true)
  const given = toTerraformEnv({ [name]: 'x' }, [name])
  expect(given[name]).not.toBe('x')
})

test('the environment of a command has what is listed', () => {
  const env = { PATH: '/bin', HOME: '/h', https_proxy: 'http://p', AWS_PROFILE: 'a', OTHER: 'o', PDM_X: 'p', EMPTY: '' }
  expect(toTerraformEnv(env, ['AWS_PROFILE', 'ABSENT', 'EMPTY'])).toEqual({
    PATH: '/bin',
    HOME: '/h',
    https_proxy: 'http://p',
    AWS_PROFILE: 'a',
    EMPTY: '',
    CHECKPOINT_DISABLE: '1',
    TF_IN_AUTOMATION: '1',
    TF_INPUT: '0',
  })
})

test('secrets of the environment: passed variables, and passwords of proxies', () => {
  const env = { HTTPS_PROXY: 'http://u:p%40ssword@proxy:1', http_proxy: 'proxy:1', KEY: 'a-long-key', FLAG: 'true' }
  expect(findEnvSecrets(env, ['KEY', 'FLAG', 'ABSENT'])).toEqual(['p%40ssword', 'p@ssword', 'a-long-key'])
  expect(findEnvSecrets({ all_proxy: 'http://u:%E0%A4@p' }, [])).toEqual(['%E0%A4', '%E0%A4'])
})

describe('of what is passed, a result shows all but credentials', () => {
  test.each([
    ['AWS_REGION', 'eu-central-1'],
    ['AWS_ENDPOINT_URL_S3', 'https://fsn1.your-objectstorage.com:443/path'],
    ['AWS_REQUEST_CHECKSUM_CALCULATION', 'when_required'],
    ['AWS_SHARED_CREDENTIALS_FILE', '/etc/aws/credentials'],
    ['OS_AUTH_URL', 'https://identity.cloud.test/v3'],
    ['ARM_SUBSCRIPTION_ID', '0f8fad5b-d9cb-469f-a165-70867728950e'],
    ['GOOGLE_PROJECT', 'my-project-123456'],
    ['STAGE', 'production'],
  ])('%s=%s', (name, value) => expect(isCredential(name, value)).toBe(false))

  test.each([
    ['AWS_SECRET_ACCESS_KEY', '/plain/words'],
    ['AWS_ACCESS_KEY_ID', 'AKIAIOSFODNN7EXAMPLE'],
    ['TF_TOKEN_app_terraform_io', 'ordinary'],
    ['TF_HTTP_PASSWORD', 'ordinary'],
    ['PG_CONN_STR', 'postgres://host/db'],
    ['STATE_URL', 'https://user:ordinary@state.test/'],
    ['SLACK_WEBHOOK_URL', 'https://hooks.slack.test/services/T00/B00/xY7aB9cD2eF4'],
    ['ANY', 'hO9aaB2xcd'],
    ['ANY', '0f8fad5bd9cb469fa16570867728950e'],
  ])('not %s=%s', (name, value) => expect(isCredential(name, value)).toBe(true))

  test('and all that is short', () => {
    const env = { HTTPS_PROXY: 'http://u:short@p', AWS_REGION: 'eu-central-1', A_TOKEN: 'short', B_TOKEN: 'long-token' }
    expect(findCredentials(env, ['AWS_REGION', 'A_TOKEN', 'B_TOKEN'], ['pool', 'long-secret'])).toEqual([
      'long-token',
      'long-secret',
    ])
  })
})

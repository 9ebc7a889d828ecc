import { describe, expect, test } from 'vitest'
import { findSensitiveTexts, parseState, StateFormatError, sortState } from './state.ts'

const BUCKET = 'catalyst-acme-pool-test'

const toState = (resources: readonly object[]): string =>
  JSON.stringify({ version: 4, serial: 1, lineage: 'l', resources })
const machine = {
  module: 'module.deployment.module.m["x"]',
  mode: 'managed',
  type: 'terraform_data',
  name: 'machine',
  instances: [{ index_key: 0, attributes: { id: '1' } }, { index_key: 0, deposed: 'ab' }, { index_key: `a"$\{b}` }],
}
const toBucket = (type: string, attributes: object, dependencies: readonly string[] = []) => ({
  module: 'module.deployment',
  mode: 'managed',
  type,
  name: 'kept',
  instances: [{ attributes, dependencies }],
})
const sort = (resources: readonly object[], bucket: string | null = BUCKET) =>
  sortState(parseState(toState(resources)).resources, bucket)

describe('the contents of a state', () => {
  test('are the addresses of managed resources as commands take them, each once', () => {
    const data = { mode: 'data', type: 'external', name: 'd', instances: [{ attributes: {} }] }
    expect(sort([machine, data])).toEqual({
      hasKeptBucket: false,
      taintedBuckets: [],
      others: [
        'module.deployment.module.m["x"].terraform_data.machine[0]',
        'module.deployment.module.m["x"].terraform_data.machine["a\\"$$' + '{b}"]',
      ],
      requiredByBucket: [],
    })
  })

  test.each([
    ['minio_s3_bucket', { bucket: BUCKET }],
    ['google_storage_bucket', { name: BUCKET }],
    ['linode_object_storage_bucket', { label: BUCKET }],
    ['any_bucket_v2', { id: BUCKET }],
  ])('include the kept bucket: %s', (type, attributes) => {
    expect(sort([toBucket(type, attributes)])).toEqual({
      hasKeptBucket: true,
      taintedBuckets: [],
      others: [],
      requiredByBucket: [],
    })
  })

  test('say whether the kept bucket is tainted', () => {
    const bucket = toBucket('minio_s3_bucket', { bucket: BUCKET })
    const tainted = { ...bucket, instances: bucket.instances.map(instance => ({ ...instance, status: 'tainted' })) }
    expect(sort([tainted])).toMatchObject({
      hasKeptBucket: true,
      taintedBuckets: ['module.deployment.minio_s3_bucket.kept'],
    })
    expect(sort([{ ...tainted, type: 'terraform_data' }])).toMatchObject({ taintedBuckets: [] })
  })

  test.each([
    ['another bucket', 'minio_s3_bucket', { bucket: `${BUCKET}-logs` }, BUCKET],
    ['a policy of the bucket', 'minio_s3_bucket_policy', { bucket: BUCKET }, BUCKET],
    ['any bucket without object storage', 'minio_s3_bucket', { bucket: '' }, null],
  ])('do not take %s for the kept bucket', (_, type, attributes, bucket) => {
    expect(sort([toBucket(type, attributes)], bucket)).toMatchObject({ hasKeptBucket: false })
  })

  test('show what the bucket depends on, directly or not', () => {
    const toNamed = (name: string, dependencies: readonly string[]) => ({
      mode: 'managed',
      type: 'terraform_data',
      name,
      instances: [{ attributes: {}, dependencies }],
    })
    const bucket = toBucket('minio_s3_bucket', { bucket: BUCKET }, ['terraform_data.a'])
    const after = toNamed('c', ['module.deployment.minio_s3_bucket.kept'])
    expect(sort([toNamed('a', ['terraform_data.b']), toNamed('b', ['terraform_data.a']), after, bucket])).toEqual({
      hasKeptBucket: true,
      taintedBuckets: [],
      others: ['terraform_data.a', 'terraform_data.b', 'terraform_data.c'],
      requiredByBucket: ['terraform_data.a', 'terraform_data.b'],
    })
  })

  test('are empty without a state', () => {
    const absent = JSON.stringify({ version: 4, serial: 0, lineage: '', resources: null })
    for (const text of ['\n', absent]) expect(parseState(text)).toEqual({ version: null, resources: [], data: [] })
  })

  test.each(['{', '[]', '{"version":3}', '{"version":4,"serial":1}'])('are not guessed from %s', text => {
    expect(() => parseState(text)).toThrow(StateFormatError)
  })
})

test('the sensitive texts of a state are those at the paths that it marks, and its sensitive outputs', () => {
  const attr = (value: string) => ({ type: 'get_attr', value })
  const key = (value: string | number) => ({ type: 'index', value: { value, type: 'string' } })
  const attributes = {
    password: 'p',
    users: [{ keys: { 'a.b': 'k' } }, { keys: { x: 'no' } }],
    all: { n: 1, list: ['l'] },
  }
  const paths = [
    [attr('password')],
    [attr('users'), key(0), attr('keys'), key('a.b')],
    [attr('all')],
    [attr('no'), key(1)],
  ]
  const instances = [{ attributes, sensitive_attributes: paths }, { attributes: { password: 'no' } }]
  const outputs = { o: { value: ['o'], sensitive: true }, shown: { value: 'no' } }
  expect(findSensitiveTexts(JSON.stringify({ resources: [{ mode: 'data', instances }], outputs }))).toEqual([
    'p',
    'k',
    'l',
    'o',
  ])
  expect(['', 'no state', '[]', '{}'].flatMap(findSensitiveTexts)).toEqual([])
})

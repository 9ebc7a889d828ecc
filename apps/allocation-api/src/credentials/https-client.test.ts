import { describe, expect, test } from 'vitest'
import { describeNetworkFailure, type NetworkFailure, toNetworkFailure } from './https-client.ts'

describe('the cause of a network error', () => {
  test.each<readonly [code: string, failure: NetworkFailure]>([
    ['ENOTFOUND', 'dns'],
    ['EAI_AGAIN', 'dns'],
    ['ECONNREFUSED', 'refused'],
    ['ECONNRESET', 'reset'],
    ['EPIPE', 'reset'],
    ['EHOSTUNREACH', 'unreachable'],
    ['ENETUNREACH', 'unreachable'],
    ['ETIMEDOUT', 'unreachable'],
    ['', 'unreachable'],
    ['ERR_TLS_CERT_ALTNAME_INVALID', 'tls'],
    ['CERT_HAS_EXPIRED', 'tls'],
    ['UNABLE_TO_VERIFY_LEAF_SIGNATURE', 'tls'],
    ['DEPTH_ZERO_SELF_SIGNED_CERT', 'tls'],
    ['SELF_SIGNED_CERT_IN_CHAIN', 'tls'],
    ['ERR_SSL_WRONG_VERSION_NUMBER', 'tls'],
    ['EPROTO', 'tls'],
    ['HPE_INVALID_CONSTANT', 'not-http'],
    ['HPE_HEADER_OVERFLOW', 'not-http'],
  ])('%s: %s', (code, failure) => {
    expect(toNetworkFailure(Object.assign(new Error('mark'), { code }))).toBe(failure)
  })

  test.each([new Error('x'), 'ECONNREFUSED', null, Object.assign(new Error('x'), { code: 5 })])('%j', error => {
    expect(toNetworkFailure(error)).toBe('unreachable')
  })
})

test('the message names the host and says that the credentials were not checked', () => {
  expect(describeNetworkFailure('fsn1.s3.test', 'refused')).toMatch(
    /^Request to fsn1\.s3\.test failed: .*refused.*could not be checked.*\.$/,
  )
})

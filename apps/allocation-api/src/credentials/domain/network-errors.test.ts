import { describe, expect, test } from 'vitest'
import { causeOf, type FailureCause, failureMessage } from './network-errors.ts'

describe('the cause of a failure', () => {
  test.each<readonly [code: string, cause: FailureCause]>([
    ['ENOTFOUND', 'lookup'],
    ['EAI_AGAIN', 'lookup'],
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
  ])('%s: %s', (code, cause) => {
    expect(causeOf(Object.assign(new Error('mark'), { code }))).toBe(cause)
  })

  test.each([new Error('x'), 'ECONNREFUSED', null, Object.assign(new Error('x'), { code: 5 })])('%j', error => {
    expect(causeOf(error)).toBe('unreachable')
  })
})

test('the message names the host and says that the credentials may be good', () => {
  expect(failureMessage('fsn1.s3.test', 'refused')).toMatch(/^fsn1\.s3\.test could not.*refuses.*may be good.*\.$/)
})

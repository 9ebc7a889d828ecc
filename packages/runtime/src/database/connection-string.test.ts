import { describe, expect, test } from 'vitest'
import { parseConnectionString } from './connection-string.ts'

const parse = (text: string) => {
  const parsed = parseConnectionString(text)
  if ('issue' in parsed) throw new Error(parsed.issue)
  return parsed
}
const explain = (text: string): string => {
  const parsed = parseConnectionString(text)
  return 'issue' in parsed ? parsed.issue : 'accepted'
}
const withParameters = (parameters: string) => `postgres://u:mark-password@h:5432/d?${parameters}`

describe('hosts', () => {
  test.each([
    ['postgres://h/d', [{ host: 'h', port: null }]],
    ['postgresql://u@h:6432/d', [{ host: 'h', port: 6_432 }]],
    ['postgres://u:p@[2001:db8::1]:5433/d', [{ host: '2001:db8::1', port: 5_433 }]],
    [
      'postgres://u:p%40@a:1,b,[::1]:3/d',
      [
        { host: 'a', port: 1 },
        { host: 'b', port: null },
        { host: '::1', port: 3 },
      ],
    ],
    ['postgres://u@%2Fvar%2Frun%2Fpostgresql/d', [{ host: '/var/run/postgresql', port: null }]],
    ['postgres:///d', []],
  ])('%s', (text, hosts) => {
    expect(parse(text).hosts).toEqual(hosts)
  })

  test('the driver gets the first host and the parameters that it understands', () => {
    const text =
      'postgres://u:p%2C@a:1,b:2/d?sslmode=disable&prepare=false&target_session_attrs=any&search_path=s&sslsni=1'
    expect(parse(text).driverUrl).toBe('postgres://u:p%2C@a:1/d?prepare=false&search_path=s')
  })

  test.each([
    'mysql://u:mark-password@h/d',
    'h/d',
    'postgres://u:mark-password@h:65536/d',
    'postgres://u:mark-password@h:/d',
    'postgres://u:mark-password%zz@h/d',
    'postgres://u:mark-password@a,,b/d',
    'postgres://u:mark-password@a b/d',
    'postgres://u:mark-password@h/d#fragment',
  ])('%s is rejected without a quote', text => {
    expect(explain(text)).toMatch(/^must be a URL of the form/)
    expect(explain(text)).not.toContain('mark-')
  })
})

describe('target_session_attrs', () => {
  test.each([
    ['postgres://a/d', 'any'],
    ['postgres://a,b/d', 'primary'],
    ['postgres://a,b/d?target_session_attrs=any', 'any'],
    ['postgres://a/d?target_session_attrs=read-write', 'read-write'],
    ['postgres://a/d?target_session_attrs=primary', 'primary'],
  ])('%s: %s', (text, sessions) => {
    expect(parse(text).sessions).toBe(sessions)
  })

  test.each(['read-only', 'standby', 'prefer-standby', 'master', ''])('"%s" is rejected', value => {
    expect(explain(`postgres://a,b/d?target_session_attrs=${value}`)).toMatch(/write primary, read-write or any$/)
  })
})

describe('TLS', () => {
  test.each([
    ['', null],
    ['sslmode=disable', null],
    ['sslmode=require', { verify: 'none', authorityFile: null, client: null }],
    ['ssl=true', { verify: 'none', authorityFile: null, client: null }],
    ['sslmode=require&sslrootcert=/ca', { verify: 'authority', authorityFile: '/ca', client: null }],
    ['sslmode=verify-ca&sslrootcert=/ca', { verify: 'authority', authorityFile: '/ca', client: null }],
    ['sslmode=verify-full&sslrootcert=/ca', { verify: 'host', authorityFile: '/ca', client: null }],
    ['sslmode=verify-full&sslrootcert=system', { verify: 'host', authorityFile: null, client: null }],
    ['sslrootcert=system', { verify: 'host', authorityFile: null, client: null }],
    [
      'sslmode=require&sslcert=/c&sslkey=/k',
      { verify: 'none', authorityFile: null, client: { certificateFile: '/c', keyFile: '/k' } },
    ],
  ])('"%s"', (parameters, tls) => {
    expect(parse(withParameters(parameters)).tls).toEqual(tls)
  })

  test.each([
    ['sslmode=prefer', /^has sslmode=prefer, which protects nothing/],
    ['sslmode=allow', /^has sslmode=allow, which protects nothing/],
    ['sslmode=mark-mode', /^has an unknown sslmode/],
    ['ssl=no', /^has the parameter ssl; write sslmode=/],
    ['sslmode=verify-full', /without sslrootcert; add sslrootcert=/],
    ['sslmode=verify-ca', /without sslrootcert; add sslrootcert=/],
    ['sslmode=require&sslrootcert=system', /needs sslmode=verify-full$/],
    ['sslrootcert=/ca', /add sslmode=verify-full$/],
    ['sslmode=disable&sslrootcert=/ca', /add sslmode=verify-full$/],
    ['sslmode=require&sslcert=/c', /sslcert and sslkey, or neither$/],
    ['sslmode=require&sslcrl=/crl', /^has the parameter sslcrl, which is not supported/],
    ['sslmode=require&channel_binding=require', /^has the parameter channel_binding, which is not supported/],
    ['host=mark-host', /^has the parameter host, which is not supported/],
  ])('%s is rejected', (parameters, issue) => {
    expect(explain(withParameters(parameters))).toMatch(issue)
    expect(explain(withParameters(parameters))).not.toContain('mark-')
  })
})

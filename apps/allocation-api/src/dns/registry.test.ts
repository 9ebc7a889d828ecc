import { EnvReader } from '@pool/runtime/service/env'
import { expect, test } from 'vitest'
import { readProvider } from './registry.ts'

const powerdns = { DNSPROVIDER_KIND: 'powerdns', DNSPROVIDER_POWERDNS_API_KEY: 'x' }
const rfc2136 = {
  DNSPROVIDER_KIND: 'rfc2136',
  DNSPROVIDER_RFC2136_HOST: '192.0.2.53',
  DNSPROVIDER_RFC2136_TSIG_NAME: 'updates',
  DNSPROVIDER_RFC2136_TSIG_SECRET: 'c2VjcmV0LXNlY3JldA==',
}

test.each<readonly [env: Record<string, string>, kind: string]>([
  [{}, 'local'],
  [{ DNSPROVIDER_KIND: ' LOCAL ' }, 'local'],
  [{ DNSPROVIDER_KIND: '', DNSPROVIDER_LOCAL_PORT: '5300' }, 'local'],
  [{ DNSPROVIDER_KIND: 'cloudflare', DNSPROVIDER_CLOUDFLARE_API_TOKEN: 'x' }, 'cloudflare'],
  [{ DNSPROVIDER_KIND: 'dynadot', DNSPROVIDER_DYNADOT_API_KEY: 'x', DNSPROVIDER_LOCAL_PORT: 'x' }, 'dynadot'],
  [{ ...powerdns, DNSPROVIDER_POWERDNS_URL: 'https://dns.internal/' }, 'powerdns'],
  [{ ...rfc2136, DNSPROVIDER_RFC2136_TSIG_NAME: 'Updates.' }, 'rfc2136'],
  ...['hmac-sha224', 'HMAC-SHA384.', 'hmac-sha512'].map((algorithm): [Record<string, string>, string] => [
    { ...rfc2136, DNSPROVIDER_RFC2136_TSIG_ALGORITHM: algorithm },
    'rfc2136',
  ]),
])('%j chooses %s', (env, kind) => {
  const read = new EnvReader(env)
  expect(readProvider(read)).toMatchObject({ kind })
  expect(read.issues).toEqual([])
})

test.each([
  ['pool.example.test=example.test', ''],
  ['Pool.Example.Test.=example.test. eu.example.test=test,example.test=example.test', ''],
  ['pool.example.test', 'must be a list of pool=zone'],
  ['pool.example.test=', 'must be a list of pool=zone'],
  ['a=b=c', 'must be a list of pool=zone'],
  ['xexample.test=example.test', 'the pool is not in that zone'],
  ['a.test=test,a.test=a.test', 'must have one zone for the pool a.test'],
])('DNSPROVIDER_ZONES %s: %s', (value, problem) => {
  const read = new EnvReader({ DNSPROVIDER_ZONES: value })
  const { zones } = readProvider(read)
  expect(read.issues.map(({ variable, detail }) => `${variable} ${detail}`)).toEqual(
    problem ? [expect.stringMatching(`^DNSPROVIDER_ZONES .*${problem}`)] : [],
  )
  if (!problem) expect([...zones.values()].every(zone => /^(example\.)?test$/.test(zone))).toBe(true)
})

test.each<readonly [env: Record<string, string>, variables: string[]]>([
  [{ DNSPROVIDER_KIND: 'constructor' }, ['DNSPROVIDER_KIND']],
  [{ DNSPROVIDER_KIND: 'route53' }, ['DNSPROVIDER_KIND']],
  [{ DNSPROVIDER_LOCAL_PORT: '-1' }, ['DNSPROVIDER_LOCAL_PORT']],
  [{ DNSPROVIDER_KIND: 'x', DNSPROVIDER_LOCAL_PORT: 'x' }, ['DNSPROVIDER_KIND', 'DNSPROVIDER_LOCAL_PORT']],
  [{ DNSPROVIDER_KIND: 'cloudflare' }, ['DNSPROVIDER_CLOUDFLARE_API_TOKEN']],
  [{ DNSPROVIDER_KIND: 'powerdns' }, ['DNSPROVIDER_POWERDNS_URL', 'DNSPROVIDER_POWERDNS_API_KEY']],
  [{ ...powerdns, DNSPROVIDER_POWERDNS_URL: 'dns.internal:8081' }, ['DNSPROVIDER_POWERDNS_URL']],
  [{ DNSPROVIDER_KIND: 'dynadot' }, ['DNSPROVIDER_DYNADOT_API_KEY']],
  [
    { DNSPROVIDER_KIND: 'rfc2136' },
    ['DNSPROVIDER_RFC2136_HOST', 'DNSPROVIDER_RFC2136_TSIG_NAME', 'DNSPROVIDER_RFC2136_TSIG_SECRET'],
  ],
  ...['hmac-sha1', 'hmac-md5.sig-alg.reg.int', 'sha256'].map((algorithm): [Record<string, string>, string[]] => [
    { ...rfc2136, DNSPROVIDER_RFC2136_TSIG_ALGORITHM: algorithm },
    ['DNSPROVIDER_RFC2136_TSIG_ALGORITHM'],
  ]),
  [{ ...rfc2136, DNSPROVIDER_RFC2136_TSIG_NAME: 'a b' }, ['DNSPROVIDER_RFC2136_TSIG_NAME']],
  [{ ...rfc2136, DNSPROVIDER_RFC2136_TSIG_SECRET: 'mark secret' }, ['DNSPROVIDER_RFC2136_TSIG_SECRET']],
  [{ ...rfc2136, DNSPROVIDER_RFC2136_PORT: '0' }, ['DNSPROVIDER_RFC2136_PORT']],
])('%j is invalid: each issue names its variable and the reason', (env, variables) => {
  const read = new EnvReader(env)
  readProvider(read)
  const { issues } = read
  expect(issues.map(({ variable }) => variable)).toEqual(variables)
  for (const { detail } of issues) {
    expect(detail).toMatch(/^(must|is required: )/)
    expect(detail).not.toContain('mark')
  }
})

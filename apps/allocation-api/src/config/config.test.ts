import { EnvReader } from '@pool/runtime/service/env'
import { describe, expect, test } from 'vitest'
import { type Config, readConfig } from './config.ts'

const url = 'postgres://user:mark-password@db.test:5432/pool'
const read = (variables: Record<string, string | undefined>) => {
  const env = new EnvReader({ PDM_DATABASE_URL: url, ...variables })
  return { config: readConfig(env), issues: env.issues }
}

const parseValid = (env: Record<string, string | undefined> = {}): Config => {
  const { config, issues } = read(env)
  expect(issues).toEqual([])
  return config
}
const getIssues = (env: Record<string, string | undefined>) => read(env).issues

test('only the database URL has no default', () => {
  expect(parseValid()).toEqual({
    port: 8_080,
    listenAddress: null,
    operator: null,
    operatorOnlyList: false,
    browsers: { allowedOrigins: [], allowedHosts: [], loopbackHostsOnly: false },
    trustedProxies: [],
    clientWritesPerMinute: null,
    requiresTls: false,
    logLevel: 'info',
    tracing: null,
    witness: null,
    consoleFolder: null,
    drainMs: 0,
    keepAliveMs: 75_000,
    managedDomains: ['pool.test'],
    database: { url, usesTls: false, poolSize: 10, timeoutMs: 5_000 },
    reservation: { ttlMs: 600_000, maxAgeMs: 86_400_000 },
    records: { maxScope: 'acme', types: ['A', 'AAAA', 'CNAME', 'TXT', 'MX', 'SRV'], limit: 100, minTtlSeconds: 60 },
    recordsUrl: null,
    releaseNeedsToken: false,
    nameCoolOffMs: 0,
    sweeperIntervalMs: 30_000,
    retention: { historyMs: null, deploymentLogMs: null },
    dns: {
      recordTemplate: { names: ['@', '*', 'console', 'api', 'gitea', 'harbor'], ttl: 300 },
      commitWaitMs: 5_000,
      driftIntervalMs: 600_000,
      acceptsAnyLocalDomain: false,
      testUrl: undefined,
      writesZones: true,
      keepsUnknown: true,
      movesProvider: false,
    },
    objectStorage: {
      provider: 'hetzner',
      domain: 'your-objectstorage.com',
      platformPrefix: 'catalyst',
    },
    credentials: {
      attemptsPerMinute: 20,
      tokenUrls: new Map([['hetzner', 'https://api.hetzner.cloud/v1/locations']]),
    },
    domainProof: { isRequired: false, resolvers: [] },
    deployments: {
      binary: null,
      dataDir: '.data/deployments',
      moduleDir: null,
      acceptsTestAddresses: false,
      backend: null,
      timeoutMs: 1_800_000,
      stopTimeoutMs: 600_000,
      passthrough: [],
      isolation: 'auto',
      runner: null,
      visiblePaths: [],
      concurrency: 2,
      knownProviders: ['local', 'hetzner'],
    },
  })
})

describe('valid values', () => {
  test.each<readonly [variable: string, value: string, read: (config: Config) => unknown, expected: unknown]>([
    ['PORT', '9000', c => c.port, 9_000],
    ['PORT', '0', c => c.port, 0],
    ['PDM_CLIENT_WRITES_PER_MINUTE', '60', c => c.clientWritesPerMinute, 60],
    ['PDM_HISTORY_RETENTION', '8760h', c => c.retention.historyMs, 31_536_000_000],
    ['PDM_HISTORY_RETENTION', ' ', c => c.retention.historyMs, null],
    ['PDM_DEPLOYMENT_LOG_RETENTION', '720h', c => c.retention.deploymentLogMs, 2_592_000_000],
    [
      'PDM_ALLOWED_ORIGINS',
      ' HTTPS://Console.Example:443, http://[::1]:3000 ',
      c => c.browsers.allowedOrigins,
      ['https://console.example', 'http://[::1]:3000'],
    ],
    ['PDM_PROVIDERS', ' AWS,local aws', c => c.deployments.knownProviders, ['local', 'hetzner', 'aws']],
    ['PDM_BYO_PROOF', 'Required', c => c.domainProof.isRequired, true],
    ['PDM_BYO_PROOF', '', c => c.domainProof.isRequired, false],
    [
      'PDM_BYO_RESOLVERS',
      '192.0.2.1, 192.0.2.2:5353 2001:db8::1,[2001:DB8::2]:53 [::1]',
      c => c.domainProof.resolvers,
      ['192.0.2.1', '192.0.2.2:5353', '2001:db8::1', '[2001:db8::2]:53', '[::1]'],
    ],
    ['OBJECT_STORAGE_PROVIDER', 'minio', c => c.deployments.knownProviders, ['local', 'minio']],
    [
      'PDM_TRUSTED_PROXIES',
      '10.0.0.0/8, 2001:DB8::/32 192.0.2.1',
      c => c.trustedProxies,
      [
        { address: '10.0.0.0', prefix: 8, family: 'ipv4' },
        { address: '2001:db8::', prefix: 32, family: 'ipv6' },
        { address: '192.0.2.1', prefix: 32, family: 'ipv4' },
      ],
    ],
    ['PDM_TRUSTED_PROXIES', '0.0.0.0/0', c => c.trustedProxies, [{ address: '0.0.0.0', prefix: 0, family: 'ipv4' }]],
    ['PDM_LISTEN_ADDRESS', '', c => c.listenAddress, null],
    ['PDM_LISTEN_ADDRESS', ' 127.0.0.1 ', c => c.listenAddress, '127.0.0.1'],
    ['PDM_LISTEN_ADDRESS', '::1', c => c.listenAddress, '::1'],
    [
      'PDM_ALLOWED_HOSTS',
      'API.test., 192.0.2.1 ::1 [2001:DB8::1]',
      c => c.browsers.allowedHosts,
      ['api.test', '192.0.2.1', '[::1]', '[2001:db8::1]'],
    ],
    ['PDM_LOOPBACK_HOSTS_ONLY', 'TRUE', c => c.browsers.loopbackHostsOnly, true],
    ['PORT', '65535', c => c.port, 65_535],
    ['PORT', ' 80 ', c => c.port, 80],
    ['PORT', '', c => c.port, 8_080],
    ['PORT', '  ', c => c.port, 8_080],
    ['PDM_DATABASE_URL', 'postgresql://h/d', c => c.database.url, 'postgresql://h/d'],
    ['PDM_DATABASE_URL', ' postgres://h/d ', c => c.database.url, 'postgres://h/d'],
    ['PDM_DATABASE_POOL_SIZE', '3', c => c.database.poolSize, 3],
    ['PDM_ACCEPT_TEST_ADDRESSES', 'true', c => c.deployments.acceptsTestAddresses, true],
    ['PDM_DEPLOYMENT_CONCURRENCY', '1', c => c.deployments.concurrency, 1],
    ['PDM_DEPLOYMENT_CONCURRENCY', '100', c => c.deployments.concurrency, 100],
    ['PDM_DATABASE_TIMEOUT', '100ms', c => c.database.timeoutMs, 100],
    ['PDM_RESERVATION_TTL', '1h30m', c => c.reservation.ttlMs, 5_400_000],
    ['PDM_RESERVATION_TTL', '1ms', c => c.reservation.ttlMs, 1],
    ['PDM_RESERVATION_TTL', '8760h', c => c.reservation.ttlMs, 31_536_000_000],
    ['PDM_RESERVATION_MAX_AGE', '10m', c => c.reservation.maxAgeMs, 600_000],
    ['PDM_SWEEPER_INTERVAL', '90s', c => c.sweeperIntervalMs, 90_000],
    ['PDM_LOG_LEVEL', 'debug', c => c.logLevel, 'debug'],
    ['OTEL_TRACES_EXPORTER', 'none', c => c.tracing, null],
    ['OTEL_TRACES_EXPORTER', 'otlp', c => c.tracing?.serviceName, 'allocation-api'],
    ['OTEL_EXPORTER_OTLP_ENDPOINT', 'https://traces.test', c => c.tracing?.sampler, 'parentbased_always_on'],
    ['OTEL_SERVICE_NAME', 'names', c => c.tracing, null],
    ['PDM_LOG_LEVEL', 'ERROR', c => c.logLevel, 'error'],
    ['PDM_DRAIN_DELAY', '10s', c => c.drainMs, 10_000],
    ['PDM_KEEP_ALIVE_TIMEOUT', '1h', c => c.keepAliveMs, 3_600_000],
    ['PDM_OPERATOR_TOKENS', 'sixteen-letters-', c => c.operator, { port: 8_081, tokens: ['sixteen-letters-'] }],
    [
      'PDM_OPERATOR_TOKENS',
      ' sixteen-letters- , ,sixteen.letters~/+==,',
      c => c.operator?.tokens,
      ['sixteen-letters-', 'sixteen.letters~/+=='],
    ],
    ['PDM_OPERATOR_TOKENS', ' , ', c => c.operator, null],
    ['PDM_OPERATOR_PORT', '9001', c => c.operator, null],
    ['PDM_OPERATOR_ONLY_LIST', 'true', c => c.operatorOnlyList, true],
    ['PDM_OPERATOR_ONLY_LIST', 'False', c => c.operatorOnlyList, false],
    ['DNSPROVIDER_RECORD_NAMES', '@', c => c.dns.recordTemplate.names, ['@']],
    [
      'DNSPROVIDER_RECORD_NAMES',
      'API, *.apps _x._tcp,api',
      c => c.dns.recordTemplate.names,
      ['api', '*.apps', '_x._tcp'],
    ],
    ['DNSPROVIDER_RECORD_TTL', '1m', c => c.dns.recordTemplate.ttl, 60],
    ['PDM_DNS_COMMIT_WAIT', '0s', c => c.dns.commitWaitMs, 0],
    ['PDM_DNS_COMMIT_WAIT', '0', c => c.dns.commitWaitMs, 0],
    ['PDM_DNS_WRITES', 'OFF', c => c.dns.writesZones, false],
    ['PDM_DNS_PROVIDER_MOVE', 'true', c => c.dns.movesProvider, true],
    ['PDM_UNKNOWN_RECORDS', 'ignore', c => c.dns.keepsUnknown, false],
    ['OBJECT_STORAGE_DOMAIN', ' S3.Test ', c => c.objectStorage.domain, 's3.test'],
    ['OBJECT_STORAGE_DOMAIN', 's3.test:8443', c => c.objectStorage.domain, 's3.test:8443'],
    ['OBJECT_STORAGE_DOMAIN', 'localhost:65535', c => c.objectStorage.domain, 'localhost:65535'],
    ['OBJECT_STORAGE_PROVIDER', 'My-Cloud', c => c.objectStorage.provider, 'my-cloud'],
    ['PDM_PLATFORM_PREFIX', 'a'.repeat(58), c => c.objectStorage.platformPrefix, 'a'.repeat(58)],
    ['PDM_TEST_SETTINGS', '{"providerUrl":"http://127.0.0.1:1/x"}', c => c.dns.testUrl, 'http://127.0.0.1:1/x'],
    ['PDM_TEST_SETTINGS', '{"publicPools":true}', c => c.dns.acceptsAnyLocalDomain, true],
    ['PDM_TEST_SETTINGS', '{"validationAttempts":1}', c => c.credentials.attemptsPerMinute, 1],
    ['PDM_TEST_SETTINGS', '{"consoleFolder":"/console"}', c => c.consoleFolder, '/console'],
    ['PDM_PLATFORM_PREFIX', '7', c => c.objectStorage.platformPrefix, '7'],
    [
      'PROVIDER_TOKEN_URLS',
      'One=https://one.test/Path?Key=V,\n two=https://two.test:8443/a=b',
      c => [...c.credentials.tokenUrls],
      [
        ['one', 'https://one.test/Path?Key=V'],
        ['two', 'https://two.test:8443/a=b'],
      ],
    ],
    ['PROVIDER_TOKEN_URLS', ' , ', c => [...c.credentials.tokenUrls.keys()], ['hetzner']],
  ])('%s=%j', (variable, value, get, expected) => {
    expect(get(parseValid({ [variable]: value }))).toEqual(expected)
  })

  test('a TTL above the default maximum age raises the maximum age', () => {
    expect(parseValid({ PDM_RESERVATION_TTL: '48h' }).reservation).toEqual({
      ttlMs: 172_800_000,
      maxAgeMs: 172_800_000,
    })
  })
})

describe('managed domains', () => {
  test.each<readonly [rule: string, list: string | undefined, legacy: string | undefined, domains: string[]]>([
    ['the built-in default', undefined, undefined, ['pool.test']],
    ['the list', 'a.test,b.test', undefined, ['a.test', 'b.test']],
    ['the list takes precedence over the legacy variable', 'a.test', 'b.test', ['a.test']],
    ['the legacy variable takes precedence over the default', undefined, 'b.test', ['b.test']],
    ['a list of separators only counts as unset', ' ,,\n\t, ', 'b.test', ['b.test']],
    ['two lists of separators only', ' , ', ', ', ['pool.test']],
    ['an empty list counts as unset', '', 'b.test', ['b.test']],
    [
      'commas and any white space separate',
      'a.test b.test\tc.test\nd.test,e.test , f.test',
      undefined,
      [...'abcdef'].map(l => `${l}.test`),
    ],
    ['lower-cased', 'A.Test', undefined, ['a.test']],
    ['duplicates are removed', 'a.test,A.test,a.test.', undefined, ['a.test']],
    ['a trailing dot is removed', 'a.test.', undefined, ['a.test']],
    ['the legacy variable is parsed the same way', undefined, ' B.test. ', ['b.test']],
    ['a private pool may be one label', 'internal', undefined, ['internal']],
    ['an A-label is a domain name', 'xn--bcher-kva.test', undefined, ['xn--bcher-kva.test']],
  ])('%s', (_, list, legacy, domains) => {
    const config = parseValid({ DNSPROVIDER_MANAGED_DOMAINS: list, DNSPROVIDER_DOMAIN: legacy })
    expect(config.managedDomains).toEqual(domains)
  })

  test.each([
    '-a.test',
    'a..test',
    '.',
    'a_b.test',
    'bücher.test',
    '*.test',
    `${'a'.repeat(64)}.test`,
    'a.test..',
    '1.2.3.4',
    'http://a.test',
  ])('rejects %s', domain => {
    expect(getIssues({ DNSPROVIDER_MANAGED_DOMAINS: `good.test,${domain}` })).toEqual([
      { variable: 'DNSPROVIDER_MANAGED_DOMAINS', detail: expect.stringContaining('is not a domain name') },
    ])
  })

  test('an issue in the legacy variable names the legacy variable', () => {
    expect(getIssues({ DNSPROVIDER_DOMAIN: '-' })).toMatchObject([{ variable: 'DNSPROVIDER_DOMAIN' }])
  })

  test('the longest record below the longest label fits into a name', () => {
    const pool = (length: number) => `${'a'.repeat(63)}.${'b'.repeat(63)}.${'c'.repeat(length - 128)}`
    // 253 characters, less 63 of the label, 7 of "console" and two dots.
    expect(parseValid({ DNSPROVIDER_MANAGED_DOMAINS: pool(181) }).managedDomains[0]).toHaveLength(181)
    expect(getIssues({ DNSPROVIDER_MANAGED_DOMAINS: pool(182) })).toMatchObject([
      { detail: expect.stringContaining('181') },
    ])
    expect(
      parseValid({ DNSPROVIDER_MANAGED_DOMAINS: pool(189), DNSPROVIDER_RECORD_NAMES: '@' }).managedDomains[0],
    ).toHaveLength(189)
  })
})

describe('invalid values', () => {
  test.each([
    ['OTEL_TRACES_EXPORTER', 'zipkin'],
    ['OTEL_EXPORTER_OTLP_PROTOCOL', 'grpc'],
    ['OTEL_EXPORTER_OTLP_ENDPOINT', '127.0.0.1:4318'],
    ['OTEL_TRACES_SAMPLER', 'jaeger_remote'],
    ['OTEL_TRACES_SAMPLER_ARG', '10 %'],
    ['OTEL_TRACES_SAMPLER_ARG', '1.1'],
    ['PORT', '65536'],
    ['PORT', '-1'],
    ['PDM_BYO_PROOF', 'yes'],
    ['PDM_BYO_RESOLVERS', 'dns.example'],
    ['PDM_BYO_RESOLVERS', '192.0.2.256'],
    ['PDM_BYO_RESOLVERS', '192.0.2.1:0'],
    ['PDM_BYO_RESOLVERS', '192.0.2.1:65536'],
    ['PDM_BYO_RESOLVERS', '192.0.2.1:dns'],
    ['PDM_BYO_RESOLVERS', '[192.0.2.1]:53'],
    ['PDM_BYO_RESOLVERS', '2001:db8::g'],
    ['PORT', '80.5'],
    ['PORT', '0x50'],
    ['PORT', 'http'],
    ['PORT', '8080/tcp'],
    ['PDM_DATABASE_URL', ''],
    ['PDM_DATABASE_URL', 'db.test'],
    ['PDM_DATABASE_URL', 'mysql://mark-user:mark-password@h/d'],
    ['PDM_DATABASE_URL', 'postgres//mark-password'],
    ['PDM_DATABASE_URL', 'postgres://u:mark-password@h:99999/d'],
    ['PDM_DATABASE_URL', 'postgres://u:mark-password%zz@h/d'],
    ['PDM_DATABASE_POOL_SIZE', '0'],
    ['PDM_DATABASE_POOL_SIZE', '1001'],
    ['PDM_ACCEPT_TEST_ADDRESSES', 'yes'],
    ['PDM_DEPLOYMENT_CONCURRENCY', '0'],
    ['PDM_DEPLOYMENT_CONCURRENCY', '101'],
    ['PDM_DATABASE_TIMEOUT', '0s'],
    ['PDM_DATABASE_TIMEOUT', '2m'],
    ['PDM_RESERVATION_TTL', '0s'],
    ['PDM_RESERVATION_TTL', '-10m'],
    ['PDM_RESERVATION_TTL', '600'],
    ['PDM_RESERVATION_TTL', '8761h'],
    ['PDM_RESERVATION_TTL', '1ns'],
    ['PDM_RESERVATION_MAX_AGE', '1d'],
    ['PDM_RESERVATION_MAX_AGE', '9m'],
    ['PDM_SWEEPER_INTERVAL', '9ms'],
    ['PDM_SWEEPER_INTERVAL', '25h'],
    ['PDM_HISTORY_RETENTION', '23h'],
    ['PDM_HISTORY_RETENTION', 'forever'],
    ['PDM_DEPLOYMENT_LOG_RETENTION', '59m'],
    ['PDM_LOG_LEVEL', 'verbose'],
    ['PDM_DRAIN_DELAY', '11s'],
    ['PDM_KEEP_ALIVE_TIMEOUT', '999ms'],
    ['PDM_OPERATOR_TOKENS', 'good,mark token'],
    ['PDM_OPERATOR_TOKENS', 'mark-"token"'],
    ['PDM_OPERATOR_TOKENS', 'mark-t=oken'],
    ['PDM_OPERATOR_TOKENS', 'sixteen-letters-,mark-15-letters'],
    ['PDM_OPERATOR_PORT', '65536'],
    ['PDM_OPERATOR_ONLY_LIST', 'yes'],
    ['PDM_OPERATOR_ONLY_LIST', '1'],
    ['PDM_ALLOWED_HOSTS', 'api.test:8080'],
    ['PDM_ALLOWED_HOSTS', 'https://api.test'],
    ['PDM_ALLOWED_HOSTS', '[::1]:80'],
    ['PDM_ALLOWED_HOSTS', 'a@api.test'],
    ['PDM_TRUSTED_PROXIES', '10.0.0.0/33'],
    ['PDM_TRUSTED_PROXIES', '2001:db8::/129'],
    ['PDM_TRUSTED_PROXIES', '10.0.0/8'],
    ['PDM_TRUSTED_PROXIES', '10.0.0.0/-1'],
    ['PDM_TRUSTED_PROXIES', '[2001:db8::]/32'],
    ['PDM_TRUSTED_PROXIES', 'proxy.internal'],
    ['DNSPROVIDER_RECORD_NAMES', '@,a..b'],
    ['DNSPROVIDER_RECORD_NAMES', 'a*'],
    ['DNSPROVIDER_RECORD_NAMES', '-a'],
    ['DNSPROVIDER_RECORD_NAMES', 'a.*'],
    ['DNSPROVIDER_RECORD_NAMES', 'ä'],
    ['DNSPROVIDER_RECORD_TTL', '300'],
    ['DNSPROVIDER_RECORD_TTL', '0s'],
    ['DNSPROVIDER_RECORD_TTL', '169h'],
    ['PDM_DNS_COMMIT_WAIT', '61s'],
    ['PDM_DNS_WRITES', 'false'],
    ['PDM_DNS_PROVIDER_MOVE', 'yes'],
    ['PDM_UNKNOWN_RECORDS', 'keep'],
    ['OBJECT_STORAGE_DOMAIN', 'https://s3.test'],
    ['OBJECT_STORAGE_DOMAIN', 's3.test/'],
    ['OBJECT_STORAGE_DOMAIN', 's3.test.'],
    ['OBJECT_STORAGE_DOMAIN', 'user@s3.test'],
    ['OBJECT_STORAGE_DOMAIN', 's3..test'],
    ['OBJECT_STORAGE_DOMAIN', 's3.test:0'],
    ['OBJECT_STORAGE_DOMAIN', 's3.test:65536'],
    ['OBJECT_STORAGE_DOMAIN', 's3.test:'],
    ['OBJECT_STORAGE_DOMAIN', ':443'],
    ['OBJECT_STORAGE_DOMAIN', '203.0.113.10'],
    ['OBJECT_STORAGE_DOMAIN', '[::1]:443'],
    ['OBJECT_STORAGE_DOMAIN', `${'a.'.repeat(125)}test`],
    ['OBJECT_STORAGE_PROVIDER', 'a.b'],
    ['OBJECT_STORAGE_PROVIDER', '-a'],
    ['OBJECT_STORAGE_PROVIDER', 'a'.repeat(64)],
    ['PDM_PLATFORM_PREFIX', 'Catalyst'],
    ['PDM_PLATFORM_PREFIX', '-a'],
    ['PDM_PLATFORM_PREFIX', 'a.b'],
    ['PDM_PLATFORM_PREFIX', 'a'.repeat(59)],
    ['PDM_PLATFORM_PREFIX', 'sthree'],
    ['PDM_PLATFORM_PREFIX', 'xn-'],
    ['PDM_TEST_SETTINGS', '{'],
    ['PDM_TEST_SETTINGS', '[]'],
    ['PDM_TEST_SETTINGS', '{"other":1}'],
    ['PDM_TEST_SETTINGS', '{"providerUrl":"https://mark.test"}'],
    ['PDM_TEST_SETTINGS', '{"providerUrl":"http://127.0.0.1.mark.test"}'],
    ['PROVIDER_TOKEN_URLS', 'https://mark.test'],
    ['PROVIDER_TOKEN_URLS', 'a=http://mark.test'],
    ['PROVIDER_TOKEN_URLS', 'a=https://mark-user:mark@h'],
    ['PROVIDER_TOKEN_URLS', 'a=https://mark.test/#x'],
    ['PROVIDER_TOKEN_URLS', 'a=https://'],
    ['PROVIDER_TOKEN_URLS', '=https://mark.test'],
    ['PROVIDER_TOKEN_URLS', 'a_b=https://mark.test'],
    ['PROVIDER_TOKEN_URLS', 'a=https://mark.test,A=https://mark.test'],
  ])('%s=%j', (variable, value) => {
    const issues = getIssues({ [variable]: value })
    expect(issues).toEqual([{ variable, detail: expect.stringMatching(/^\S/) }])
    expect(issues[0]?.detail).not.toMatch(/mark|\n/)
  })

  test('the operator port must differ from PORT, unless both are 0', () => {
    const tokens = { PDM_OPERATOR_TOKENS: 'sixteen-letters-' }
    expect(getIssues({ ...tokens, PORT: '8081' })).toMatchObject([{ variable: 'PDM_OPERATOR_PORT' }])
    expect(getIssues({ ...tokens, PORT: '0', PDM_OPERATOR_PORT: '0' })).toEqual([])
  })
})

test('one result lists every issue, without a secret', () => {
  const issues = getIssues({
    PORT: 'x',
    PDM_DATABASE_URL: 'mark-url',
    PDM_DATABASE_POOL_SIZE: 'x',
    PDM_DATABASE_TIMEOUT: 'x',
    PDM_RESERVATION_TTL: 'x',
    PDM_RESERVATION_MAX_AGE: 'x',
    PDM_SWEEPER_INTERVAL: 'x',
    PDM_LOG_LEVEL: 'x',
    PDM_DRAIN_DELAY: 'x',
    PDM_KEEP_ALIVE_TIMEOUT: 'x',
    PDM_OPERATOR_TOKENS: 'mark token',
    PDM_OPERATOR_PORT: 'x',
    PDM_OPERATOR_ONLY_LIST: 'x',
    DNSPROVIDER_MANAGED_DOMAINS: '-',
    DNSPROVIDER_RECORD_NAMES: '-',
    DNSPROVIDER_RECORD_TTL: 'x',
    PDM_DNS_COMMIT_WAIT: 'x',
    OBJECT_STORAGE_DOMAIN: '-',
    OBJECT_STORAGE_PROVIDER: '-',
    PDM_PLATFORM_PREFIX: '-',
    PROVIDER_TOKEN_URLS: 'mark',
  })
  expect(new Set(issues.map(({ variable }) => variable)).size).toBe(21)
  expect(JSON.stringify(issues)).not.toContain('mark')
})

test('unknown variables are ignored', () => {
  expect(getIssues({ PDM_TEST_DSN: 'x', PATH: '/bin', PDM_NEW: 'x' })).toEqual([])
})

test.each(['*', 'null', 'console.example', 'https://console.example/', 'https://console.example/x', 'file:///x'])(
  'PDM_ALLOWED_ORIGINS: %s is not an origin',
  origin => {
    expect(getIssues({ PDM_ALLOWED_ORIGINS: `https://good.example ${origin}` })).toEqual([
      { variable: 'PDM_ALLOWED_ORIGINS', detail: expect.stringContaining(`"${origin}" is not an origin`) },
    ])
  },
)

describe('the lease witness', () => {
  const PDM_WITNESS_URL = 'https://witness.example/'
  const PDM_WITNESS_TOKEN = 'mark-token'

  test('has a URL without the slash at its end, and a token', () => {
    expect(parseValid({ PDM_WITNESS_URL, PDM_WITNESS_TOKEN }).witness).toEqual({
      url: 'https://witness.example',
      token: 'mark-token',
    })
    expect(parseValid({ PDM_WITNESS_URL: 'http://[::1]:8787/a/', PDM_WITNESS_TOKEN }).witness?.url).toBe(
      'http://[::1]:8787/a',
    )
  })

  test.each([
    [{ PDM_WITNESS_URL }, ['PDM_WITNESS_TOKEN']],
    [{ PDM_WITNESS_TOKEN }, ['PDM_WITNESS_URL']],
    [{ PDM_WITNESS_URL: 'witness.example', PDM_WITNESS_TOKEN }, ['PDM_WITNESS_URL']],
    [{ PDM_WITNESS_URL: 'ftp://witness.example', PDM_WITNESS_TOKEN }, ['PDM_WITNESS_URL']],
    [{ PDM_WITNESS_URL: 'https://mark@witness.example', PDM_WITNESS_TOKEN }, ['PDM_WITNESS_URL']],
    [{ PDM_WITNESS_URL: 'https://witness.example/lease', PDM_WITNESS_TOKEN }, ['PDM_WITNESS_URL']],
    [{ PDM_WITNESS_URL: 'https://witness.example?mark', PDM_WITNESS_TOKEN }, ['PDM_WITNESS_URL']],
    [{ PDM_WITNESS_URL, PDM_WITNESS_TOKEN: 'mark token' }, ['PDM_WITNESS_TOKEN']],
  ])('%j is invalid, and no issue quotes a value', (env, variables) => {
    const issues = getIssues(env)
    expect(issues.map(({ variable }) => variable)).toEqual(variables)
    expect(JSON.stringify(issues)).not.toContain('mark')
  })
})

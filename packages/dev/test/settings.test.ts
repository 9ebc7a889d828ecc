import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { readStartSettings } from '../src/settings.ts'

test('has defaults; the data directory is in the project for any working directory', () => {
  expect(readStartSettings({ INIT_CWD: '/elsewhere' }, '/project')).toMatchObject({
    apiPort: 8080,
    operatorPort: 8081,
    dnsPort: 5300,
    witnessPort: 8787,
    dataDir: '/project/.data',
    pool: 'pool.test',
    defaultPorts: ['operatorPort', 'dnsPort', 'witnessPort'],
  })
})

test.each([
  [{ PORT: '8081' }, { apiPort: 8081, operatorPort: 8081, defaultPorts: ['operatorPort', 'dnsPort', 'witnessPort'] }],
  [
    { DNS_PORT: '53', PDM_OPERATOR_PORT: '99', WITNESS_PORT: '9' },
    { defaultPorts: [], witnessPort: 9 },
  ],
  [{ DATA_DIR: '/somewhere' }, { dataDir: '/somewhere' }],
  [{ DATA_DIR: 'near', INIT_CWD: '/typed/here' }, { dataDir: '/typed/here/near' }],
  [
    { PORT: ' 9000 ', DNS_PORT: '' },
    { apiPort: 9000, dnsPort: 5300 },
  ],
  [{ DNSPROVIDER_MANAGED_DOMAINS: ' , ', DNSPROVIDER_DOMAIN: 'Old.test.' }, { pool: 'old.test' }],
  [{ DNSPROVIDER_MANAGED_DOMAINS: ' b.test, a.test' }, { pool: 'b.test' }],
])('%o gives %o', (env, settings) => {
  expect(readStartSettings(env, '/project')).toMatchObject(settings)
})

test.each([
  [{ PORT: '0', DNS_PORT: 'dns' }, 'PORT must be a port from 1 to 65535; DNS_PORT must be a port from 1 to 65535'],
  [{ PORT: '8081', PDM_OPERATOR_PORT: '8081' }, 'PORT and PDM_OPERATOR_PORT are both 8081'],
  [{ PORT: '9000', DNS_PORT: '9000' }, 'PORT and DNS_PORT are both 9000'],
  [{ WITNESS_PORT: '8080' }, 'PORT and WITNESS_PORT are both 8080'],
  [{ HTTPS_PROXY: 'http://proxy:port' }, 'HTTPS_PROXY must be the URL of a proxy, such as http://proxy.example:3128'],
  [{ DNS_PORT: '65536' }, 'DNS_PORT must be a port from 1 to 65535'],
])('%o is rejected: %s', (env, message) => {
  expect(() => readStartSettings(env, '/project')).toThrow(expect.objectContaining({ message, exitCode: 2 }))
})

test('docs/reference/configuration.md has every variable that start reads', () => {
  const names = new Set<string>()
  const env = new Proxy<NodeJS.ProcessEnv>({}, { get: (_, name) => void names.add(String(name)) })
  readStartSettings(env, '/project')
  const docs = readFileSync(new URL('../../../docs/reference/configuration.md', import.meta.url), 'utf8')
  expect(names).toContain('DATA_DIR')
  expect([...names].filter(name => !docs.includes(`\`${name}\``))).toEqual([])
})

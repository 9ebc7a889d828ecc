import { expect, test } from 'vitest'
import { readLocalConfig } from './config.ts'

const root = '/project'

test.each([
  ['nothing', {}, 8787, '/project/.data', { BEARER_TOKENS_CSV: '' }],
  ['empty variables', { PORT: '', DATA_DIR: ' ', LOG_LEVEL: '' }, 8787, '/project/.data', { BEARER_TOKENS_CSV: '' }],
  ['a port', { PORT: ' 0 ' }, 0, '/project/.data', { BEARER_TOKENS_CSV: '' }],
  ['the highest port', { PORT: '65535' }, 65_535, '/project/.data', { BEARER_TOKENS_CSV: '' }],
  [
    'tokens',
    { BEARER_TOKENS_CSV: 'token-a-0123456789, token-b-0123456789 ,' },
    8787,
    '/project/.data',
    { BEARER_TOKENS_CSV: 'token-a-0123456789, token-b-0123456789 ,' },
  ],
  [
    'token settings',
    { TOKEN_POLICIES: ' [] ', MAX_REQUESTS_PER_MINUTE: '600', MAX_WAIT_SECONDS: '60' },
    8787,
    '/project/.data',
    { BEARER_TOKENS_CSV: '', TOKEN_POLICIES: ' [] ', MAX_REQUESTS_PER_MINUTE: '600', MAX_WAIT_SECONDS: '60' },
  ],
  ['a level', { LOG_LEVEL: ' DEBUG ' }, 8787, '/project/.data', { BEARER_TOKENS_CSV: '', LOG_LEVEL: ' DEBUG ' }],
  ['a directory', { DATA_DIR: '/data', INIT_CWD: '/working/directory' }, 8787, '/data', { BEARER_TOKENS_CSV: '' }],
  [
    'a relative directory',
    { DATA_DIR: './data', INIT_CWD: '/working/directory' },
    8787,
    '/working/directory/data',
    { BEARER_TOKENS_CSV: '' },
  ],
])('%s', (_what, env, port, dataDir, bindings) => {
  expect(readLocalConfig(env, root)).toEqual({
    config: { port, dataDir, loopbackHostsOnly: false, bindings },
    warnings: [],
  })
})

test('a misspelt variable is a warning', () => {
  expect(readLocalConfig({ TOKEN_POLICY: '[]', LOOPBACK_HOST_ONLY: 'true', SHELL: 'sh' }, root)).toMatchObject({
    warnings: [{ variable: 'LOOPBACK_HOST_ONLY' }, { variable: 'TOKEN_POLICY' }],
  })
})

test('LOOPBACK_HOSTS_ONLY', () => {
  expect(readLocalConfig({ LOOPBACK_HOSTS_ONLY: ' True ' }, root)).toMatchObject({
    config: { loopbackHostsOnly: true },
  })
})

test.each([
  [{ LOOPBACK_HOSTS_ONLY: 'yes' }, ['LOOPBACK_HOSTS_ONLY']],
  [{ PORT: 'http' }, ['PORT']],
  [{ PORT: '-1' }, ['PORT']],
  [{ PORT: '65536' }, ['PORT']],
  [{ PORT: '80.5' }, ['PORT']],
  [{ PORT: '0x50' }, ['PORT']],
  [{ LOG_LEVEL: 'warn' }, ['LOG_LEVEL']],
  [{ TOKEN_POLICIES: '{}' }, ['TOKEN_POLICIES']],
  [{ TOKEN_POLICIES: '[{"token":"two words"}]' }, ['TOKEN_POLICIES']],
  [{ MAX_REQUESTS_PER_MINUTE: '-1' }, ['MAX_REQUESTS_PER_MINUTE']],
  [{ MAX_WAIT_SECONDS: '61' }, ['MAX_WAIT_SECONDS']],
  [{ BEARER_TOKENS_CSV: 'good,two words' }, ['BEARER_TOKENS_CSV']],
  [{ BEARER_TOKENS_CSV: 'fifteen-letters' }, ['BEARER_TOKENS_CSV']],
  [{ BEARER_TOKENS_CSV: 'schlüssel' }, ['BEARER_TOKENS_CSV']],
  [{ BEARER_TOKENS_CSV: 'a\nb' }, ['BEARER_TOKENS_CSV']],
  [{ PORT: 'x', LOG_LEVEL: 'x', BEARER_TOKENS_CSV: 'x x' }, ['PORT', 'LOG_LEVEL', 'BEARER_TOKENS_CSV']],
])('%o: the errors name the variables', (env, variables) => {
  const parsed = readLocalConfig(env, root)
  const errors = 'errors' in parsed ? parsed.errors : []
  expect(errors.map(error => error.split(' ')[0])).toEqual(variables)
  expect(errors.join('\n')).not.toMatch(/two words|schlüssel|x x/)
})

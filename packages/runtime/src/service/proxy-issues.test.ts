import { expect, test } from 'vitest'
import { findProxyIssues } from './proxy-issues.ts'

test.each([
  {
    HTTPS_PROXY: 'http://user:p%40ss@proxy.example:3128',
    http_proxy: 'proxy.example:3128',
    ALL_PROXY: 'socks5://10.0.0.1',
  },
  { https_proxy: 'https://[2001:db8::1]:3128/', NO_PROXY: 'localhost, .example.com,*.svc,10.0.0.0/8,[::1]:80,::1,' },
  { HTTPS_PROXY: ' ', NO_PROXY: '*', no_proxy: '192.0.2.1-192.0.2.9', PROXY: '://' },
])('valid: %j', env => expect(findProxyIssues(env)).toEqual([]))

test.each([
  ['HTTPS_PROXY', 'http://'],
  ['HTTPS_PROXY', 'http://proxy:port'],
  ['HTTPS_PROXY', 'http://mark one:3128'],
  ['https_proxy', 'ftp://mark:21'],
  ['HTTPS_PROXY', 'socks5://mark:1080'],
  ['HTTP_PROXY', '"http://mark:3128"'],
  ['http_proxy', 'http://mark:99999'],
  ['ALL_PROXY', '://'],
  ['NO_PROXY', 'http://mark.example'],
  ['no_proxy', 'a;mark'],
  ['NO_PROXY', 'mark localhost'],
])('invalid: %s=%s', (variable, value) => {
  const issues = findProxyIssues({ [variable]: value, HTTPS_PROXY_OTHER: value })
  expect(issues.map(issue => issue.variable)).toEqual([variable])
  expect(JSON.stringify(issues)).not.toContain('mark')
})

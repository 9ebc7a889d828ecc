import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { findVisiblePaths, toExitOfCommand } from './isolation.ts'

test.each([
  [0, 0, null],
  [130, null, 'SIGINT'],
  [137, null, 'SIGKILL'],
  [255, 255, null],
])('an isolated command that ended with the code %i has ended with %j, %j', (exitCode, code, signal) => {
  expect(toExitOfCommand({ code: exitCode, signal: null })).toEqual({ code, signal })
})

test('a run sees what its configuration names, and no folder that a passed variable names', () => {
  const HOME = mkdtempSync(join(tmpdir(), 'visible-'))
  onTestFinished(() => rmSync(HOME, { recursive: true }))
  const at = (name: string) => join(HOME, name)
  for (const folder of ['module', 'state', 'cache', 'mirror', 'more', 'certs', 'passed']) mkdirSync(at(folder))
  for (const file of ['terraform', 'key', 'key2', 'key3', 'ca.pem', 'unnamed']) writeFileSync(at(file), '')
  const rc = 'plugin_cache_dir = "$HOME/cache"\nprovider_installation { filesystem_mirror { path = "$HOME/mirror" } }'
  writeFileSync(at('.terraformrc'), rc)
  const { readable, writable } = findVisiblePaths({
    binary: at('terraform'),
    modules: [at('module')],
    settings: { passthrough: ['KEYS', 'FOLDER', 'JSON', 'TOKEN'], visiblePaths: [at('more')] },
    env: {
      HOME,
      KEYS: `${at('key')}:${at('key2')}`,
      FOLDER: at('passed'),
      JSON: JSON.stringify({ p: { String: at('key3') } }),
      TOKEN: 'secret',
      SSL_CERT_FILE: at('ca.pem'),
      SSL_CERT_DIR: `${at('certs')}:/missing`,
      TF_PLUGIN_CACHE_DIR: '/missing',
    },
    stateDir: at('state'),
  })
  const names = 'terraform module ca.pem certs .terraformrc cache mirror key key2 key3 more'
  expect(readable).toEqual(names.split(' ').map(at))
  expect(writable).toEqual([at('state'), at('cache')])
})

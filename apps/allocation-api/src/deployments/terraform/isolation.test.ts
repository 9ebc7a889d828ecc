import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { shouldSkip } from '@pool/test-kit/optional-deps.ts'
import { expect, onTestFinished, test } from 'vitest'
import { findVisiblePaths, probeIsolation, toIsolatedCommand } from './isolation.ts'
import { runInProcessGroup, toExitOfCommand } from './process-group.ts'

test.each([
  [0, 0, null],
  [130, null, 'SIGINT'],
  [137, null, 'SIGKILL'],
  [255, 255, null],
])('a command whose shell ended with the code %i has ended with %j, %j', (exitCode, code, signal) => {
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

const env = { PATH: process.env.PATH ?? '' }
const obstacle = await probeIsolation(env)
const isMissing = shouldSkip(
  obstacle === null
    ? undefined
    : `Isolation is not tested: ${obstacle}. Run the tests as root, or permit user namespaces (kernel.unprivileged_userns_clone=1).`,
)

test.skipIf(isMissing)(
  'an interrupt at any moment of the isolation ends the command or not, and is no error',
  async () => {
    const data = realpathSync(mkdtempSync(join(tmpdir(), 'interrupted-')))
    onTestFinished(() => rmSync(data, { recursive: true }))
    const cwd = join(data, 'work', 'run')
    for (const folder of [cwd, join(data, 'root')]) mkdirSync(folder, { recursive: true })
    const [file, ...args] = toIsolatedCommand(['echo', 'started'], cwd, { readable: [], writable: [] })
    for (let moment = 0; moment < 25; moment += 1) {
      const ending = new AbortController()
      let output = ''
      const onOutput = (_: string, chunk: string) => {
        output += chunk
      }
      const exited = runInProcessGroup({ file, args, cwd, env, onOutput, signal: ending.signal, graceMs: 600_000 })
      await sleep(moment * 4)
      ending.abort()
      const { code, signal } = await exited
      // One that comes too early or too late changes nothing, and one in between can end the command after its output.
      expect(['', 'started\n']).toContain(output)
      expect(output === '' ? ['SIGINT'] : [0, 'SIGINT']).toContain(code ?? signal)
    }
  },
)

import { chmodSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { readToken } from '../src/token-store.ts'
import { createCliFolder, runPoolctl } from './support/cli.ts'

const signal = new AbortController().signal
const isRoot = process.getuid?.() === 0

describe('poolctl contexts', () => {
  test('creates, lists, shows, selects and removes contexts', async () => {
    using home = createCliFolder()
    const { env, config } = home
    const run = (line: string) => runPoolctl(line.split(' '), { env })
    expect(await run('contexts set local --api http://127.0.0.1:8081 --api-token-file /t')).toMatchObject({
      exitCode: 0,
    })
    expect(
      await run('contexts set prod --witness https://witness.example/ --witness-token-command get-token'),
    ).toMatchObject({ exitCode: 0 })
    expect((await run('contexts list')).stdout).toBe(
      'CURRENT  NAME   API                    WITNESS\n*        local  http://127.0.0.1:8081  -\n-        prod   -                      https://witness.example\n',
    )
    expect((await run('contexts list -o name')).stdout).toBe('local\nprod\n')
    expect((await run('contexts show prod')).stdout).toBe(
      'name:           prod\nwitness:        https://witness.example\nwitness token:  command get-token\n',
    )
    expect((await run('contexts use prod')).stdout).toBe('The current context is prod.\n')
    expect(JSON.parse((await run('contexts show -o json')).stdout)).toEqual({
      name: 'prod',
      witness: { url: 'https://witness.example', token: { command: 'get-token' } },
    })
    // Flags that are absent keep their value.
    await run('contexts set local --witness http://127.0.0.1:8787')
    expect(JSON.parse(readFileSync(config, 'utf8')).contexts.local).toEqual({
      api: { url: 'http://127.0.0.1:8081', token: { file: '/t' } },
      witness: { url: 'http://127.0.0.1:8787' },
    })
    expect(await run('contexts remove prod')).toMatchObject({ exitCode: 0, stdout: 'Context prod is removed.\n' })
    expect(JSON.parse(readFileSync(config, 'utf8'))).not.toHaveProperty('current')
    expect(await run('contexts show')).toMatchObject({
      exitCode: 2,
      stderr: expect.stringContaining('no current context'),
    })
  })

  test.each([
    ['--api', 'https://pool.example/api', '/api'],
    ['--api', 'https://pool.example/api/v1/', '/api'],
    ['--witness', 'http://127.0.0.1:8787/lease', '/lease'],
    ['--witness', 'http://127.0.0.1:8787/a/%6cease/two', '/lease'],
    ['--witness', 'http://127.0.0.1:8787/history', '/history'],
  ])('%s %s is rejected when it is set and when it is read', async (flag, url, path) => {
    using home = createCliFolder()
    const set = await runPoolctl(['contexts', 'set', 'a', flag, url], home)
    expect(set).toMatchObject({ exitCode: 2, stderr: expect.stringContaining(`must have no ${path} in its path`) })
    writeFileSync(home.config, JSON.stringify({ current: 'a', contexts: { a: { [flag.slice(2)]: { url } } } }), {
      mode: 0o600,
    })
    const read = await runPoolctl(flag === '--api' ? ['zones', 'list'] : ['leases', 'get', 'primary'], home)
    expect(read).toMatchObject({ exitCode: 2, stderr: expect.stringContaining(`must have no ${path} in its path`) })
  })

  test('only the user can read the file', async () => {
    using home = createCliFolder()
    await runPoolctl(['contexts', 'set', 'a', '--api', 'http://127.0.0.1:1'], home)
    expect(statSync(home.config).mode & 0o777).toBe(0o600)
  })

  test.each([0o640, 0o604, 0o660, 0o620])('rejects a file with mode %o', async mode => {
    using home = createCliFolder()
    writeFileSync(home.config, '{"contexts":{}}')
    chmodSync(home.config, mode)
    const result = await runPoolctl(['contexts', 'list'], home)
    expect(result).toMatchObject({ exitCode: 2, stderr: expect.stringContaining(`run: chmod 600 ${home.config}`) })
  })

  test('checks the target of a link', async () => {
    using home = createCliFolder()
    const target = join(home.folder, 'target.json')
    writeFileSync(target, '{"contexts":{}}', { mode: 0o644 })
    symlinkSync(target, home.config)
    expect(await runPoolctl(['contexts', 'list'], home)).toMatchObject({ exitCode: 2 })
  })

  test.skipIf(!isRoot)('rejects a file of another user', async () => {
    using home = createCliFolder()
    const { chownSync } = await import('node:fs')
    writeFileSync(home.config, '{"contexts":{}}', { mode: 0o600 })
    chownSync(home.config, 65_534, 65_534)
    expect(await runPoolctl(['contexts', 'list'], home)).toMatchObject({
      exitCode: 2,
      stderr: expect.stringContaining('belongs to another user'),
    })
  })
})

describe('tokens', () => {
  const write = (folder: string, content: string, mode = 0o600): string => {
    const file = join(folder, 'token')
    writeFileSync(file, content, { mode })
    return file
  }

  test('come from a file, without white space around them', async () => {
    using home = createCliFolder()
    expect(await readToken({ file: write(home.folder, ' secret-token \n') }, signal)).toBe('secret-token')
  })

  test('come from a command', async () => {
    expect(await readToken({ command: 'printf "%s\\n" secret-token' }, signal)).toBe('secret-token')
  })

  test.each([
    ['a file that others can read', 'secret-token', 0o644, 'is accessible to other users'],
    ['an empty file', '\n', 0o600, 'is empty'],
    ['two lines', 'secret-token\nsecret-token', 0o600, 'does not contain one token'],
    ['a control character', 'secret-\u0001token', 0o600, 'does not contain one token'],
  ])('rejects %s, without its content', async (_, content, mode, text) => {
    using home = createCliFolder()
    const error = await readToken({ file: write(home.folder, content, mode) }, signal).catch((thrown: Error) => thrown)
    expect(error).toMatchObject({ message: expect.stringContaining(text) })
    expect(String(error)).not.toContain('secret-')
  })

  test.each([
    ['a command that fails', 'echo secret-token; exit 3', 'exit code 3'],
    ['a command that prints nothing', 'true', 'is empty'],
    ['a command that is killed', 'echo secret-token; kill -9 $$', 'SIGKILL'],
  ])('rejects %s, without its output', async (_, command, text) => {
    const error = await readToken({ command }, signal).catch((thrown: Error) => thrown)
    expect(error).toMatchObject({ message: expect.stringContaining(text) })
    expect(String(error)).not.toContain('secret-')
  })
})

import { spawn } from 'node:child_process'
import { chmodSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { isPackageManager } from '../src/parent-process.ts'
import { until } from '../src/poll.ts'
import { readPidFile } from '../src/postgres/stale-server.ts'
import { apiLog, somePorts } from './fixtures/command.ts'
import { tempFolder } from './fixtures/temp-folder.ts'

test.each([
  ['pnpm start', true],
  ['npm exec pnpm@12 start', true],
  ['node /usr/local/bin/pnpm start', true],
  ['/opt/node/bin/node --no-warnings /opt/lib/npx-cli.js -y pnpm@12 start', true],
  ['node /project/node_modules/pnpm/bin/pnpm.cjs start', true],
  ['/bin/sh /usr/local/bin/pnpm start', true],
  ['sh -c "node" "start.ts"', false],
  ['bash ./start-in-the-background.sh pnpm', false],
  ['node /home/pnpm/server.js', false],
])('%s: %s', (command, is) => {
  expect(isPackageManager(command)).toBe(is)
})

test('stops in order when the package manager above its shell is killed', async () => {
  const folder = tempFolder()
  const dataDir = join(folder, 'data')
  const entry = join(import.meta.dirname, 'fixtures/start-fake.ts')
  const pnpm = join(folder, 'pnpm')
  // The shell stays between the two, as it does in the real one, for it has something to do afterwards.
  writeFileSync(pnpm, `#!/bin/sh\nsh -c '"${process.execPath}" "${entry}"; true'; true\n`)
  chmodSync(pnpm, 0o755)
  const env = { PATH: process.env.PATH, DATA_DIR: dataDir, ...(await somePorts()) }
  const child = spawn(pnpm, ['start'], { env, stdio: 'ignore' })
  const said = (text: string) => () => {
    try {
      return apiLog(dataDir).includes(text)
    } catch {
      return false
    }
  }
  expect(await until(said('"ready"'), { everyMs: 10, withinMs: 20_000 })).toBe(true)
  child.kill('SIGKILL')
  expect(await until(said('"drained"'), { everyMs: 10, withinMs: 10_000 })).toBe(true)
  const isGone = async () => (await readPidFile(join(dataDir, 'postgres', 'cluster'))) === undefined
  expect(await until(isGone, { everyMs: 10, withinMs: 10_000 })).toBe(true)
}, 60_000)

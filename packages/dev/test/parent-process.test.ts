import { spawn } from 'node:child_process'
import { chmodSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { until } from '@pool/test-kit/poll.ts'
import { expect, test } from 'vitest'
import { readPidFile } from '../src/postgres/stale-server.ts'
import { isPackageManager } from '../src/signals.ts'
import { apiLog, freePorts, tempFolder } from './fixtures/command.ts'

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
])('%s: %s', (command, expected) => {
  expect(isPackageManager(command)).toBe(expected)
})

test('shuts down gracefully when the package manager above its shell is killed', async () => {
  const folder = tempFolder()
  const dataDir = join(folder, 'data')
  const entry = join(import.meta.dirname, 'fixtures/start-fake.ts')
  const pnpm = join(folder, 'pnpm')
  // As with the real package manager, the shell stays between the two, because it has another command.
  writeFileSync(pnpm, `#!/bin/sh\nsh -c '"${process.execPath}" "${entry}"; true'; true\n`)
  chmodSync(pnpm, 0o755)
  const env = { PATH: process.env.PATH, DATA_DIR: dataDir, ...(await freePorts()) }
  const child = spawn(pnpm, ['start'], { env, stdio: 'ignore' })
  const logContains = (text: string) => () => {
    try {
      return apiLog(dataDir).includes(text)
    } catch {
      return false
    }
  }
  await until('the API is ready', logContains('"ready"'))
  child.kill('SIGKILL')
  await until('the API has drained', logContains('"drained"'))
  const hasStopped = async () => (await readPidFile(join(dataDir, 'postgres', 'cluster'))) === undefined
  await until('Postgres has stopped', hasStopped)
})

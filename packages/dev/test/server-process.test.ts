import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { until } from '@pool/test-kit/poll.ts'
import { expect, test } from 'vitest'
import { isAlive } from '../src/poll.ts'
import {
  findProgram,
  ServerExitedError,
  startServerAndWait,
  startServerProcess,
  waitUntilUp,
} from '../src/server-process.ts'
import { tempFolder } from './fixtures/command.ts'

/** Writes its process id and keeps running. */
const keepRunning = 'echo $$ > pid.new; mv pid.new pid; exec sleep 600'
const readPid = (folder: string): number =>
  existsSync(join(folder, 'pid')) ? Number(readFileSync(join(folder, 'pid'), 'utf8')) : 0
const shell = (folder: string, command: string) => ({ name: 'server', command: ['/bin/sh', '-c', command], folder })

test('findProgram searches the system directories', () => {
  expect(findProgram('sh')).toMatch(/\/sh$/)
  expect(findProgram('no-such-program')).toBeUndefined()
})

test('a server that exits before it is up is reported with its output', async () => {
  const server = shell(tempFolder(), 'echo first; echo second >&2; exit 1')
  await expect(startServerAndWait({ ...server, isUp: async () => false })).rejects.toThrow(
    new ServerExitedError('server', 'first\nsecond\n'),
  )
})

test('a server is killed if its check throws', async () => {
  const folder = tempFolder()
  const isUp = async () => {
    if (readPid(folder) > 0) throw new Error('no response')
    return false
  }
  await expect(startServerAndWait({ ...shell(folder, keepRunning), isUp })).rejects.toThrow('no response')
  expect(isAlive(readPid(folder))).toBe(false)
})

test('kill stops the server and removes its directory without a failure', async () => {
  const folder = tempFolder()
  const state = join(folder, 'state')
  mkdirSync(state)
  const server = startServerProcess({
    ...shell(folder, `test "$ONLY" && ${keepRunning}`),
    env: { ONLY: 'this' },
    removeOnExit: state,
  })
  await waitUntilUp('the server runs', async () => readPid(folder) > 0, [server])
  await server.kill()
  expect([isAlive(readPid(folder)), existsSync(state), existsSync(folder)]).toEqual([false, false, true])
  expect(await Promise.race([server.failed, 'silent'])).toBe('silent')
})

test('the server exits when the process that started it is killed', async () => {
  const folder = tempFolder()
  const starter = spawn(process.execPath, [
    join(import.meta.dirname, 'fixtures/start-server-process.ts'),
    folder,
    keepRunning,
  ])
  await Promise.race([once(starter.stdout, 'data'), once(starter, 'exit')])
  await until('the server runs', () => readPid(folder) > 0)
  starter.kill('SIGKILL')
  await once(starter, 'exit')
  await until('the server has exited', () => !isAlive(readPid(folder)))
})

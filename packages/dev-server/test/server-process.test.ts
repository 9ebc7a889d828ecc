import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { isAlive, until } from '../src/poll.ts'
import { found, ServerEnded, startServerProcess, startServerUp, untilUp } from '../src/server-process.ts'
import { tempFolder } from './fixtures/temp-folder.ts'

/** Says its process id, and stays. */
const staying = 'echo $$ > pid.new; mv pid.new pid; exec sleep 60'
const pidIn = (folder: string): number =>
  existsSync(join(folder, 'pid')) ? Number(readFileSync(join(folder, 'pid'), 'utf8')) : 0
const shell = (folder: string, command: string) => ({ name: 'server', command: ['/bin/sh', '-c', command], folder })

test('a program is found where systems install theirs', () => {
  expect(found('sh')).toMatch(/\/sh$/)
  expect(found('no-such-program')).toBeUndefined()
})

test('a server that ends before it is up is told with all that it said', async () => {
  const server = shell(tempFolder(), 'echo first; echo second >&2; exit 1')
  await expect(startServerUp({ ...server, isUp: async () => false })).rejects.toThrow(
    new ServerEnded('server', 'first\nsecond\n'),
  )
})

test('one that fails to say whether it is up is killed', async () => {
  const folder = tempFolder()
  const isUp = async () => {
    if (pidIn(folder) > 0) throw new Error('no answer')
    return false
  }
  await expect(startServerUp({ ...shell(folder, staying), isUp })).rejects.toThrow('no answer')
  expect(isAlive(pidIn(folder))).toBe(false)
})

test('a kill leaves neither the server nor what only it wrote to, and is no failure', async () => {
  const folder = tempFolder()
  const leaves = join(folder, 'state')
  mkdirSync(leaves)
  const server = startServerProcess({ ...shell(folder, `test "$ONLY" && ${staying}`), env: { ONLY: 'this' }, leaves })
  await untilUp('it runs', async () => pidIn(folder) > 0, [server])
  await server.kill()
  expect([isAlive(pidIn(folder)), existsSync(leaves), existsSync(folder)]).toEqual([false, false, true])
  expect(await Promise.race([server.failed, 'silent'])).toBe('silent')
})

test('it goes with the process that started it, though that is killed', async () => {
  const folder = tempFolder()
  const starter = spawn(process.execPath, [join(import.meta.dirname, 'fixtures/start-server.ts'), folder, staying])
  await once(starter.stdout, 'data')
  expect(await until(() => pidIn(folder) > 0, { everyMs: 5, withinMs: 10_000 })).toBe(true)
  starter.kill('SIGKILL')
  await once(starter, 'exit')
  expect(await until(() => !isAlive(pidIn(folder)), { everyMs: 5, withinMs: 10_000 })).toBe(true)
})

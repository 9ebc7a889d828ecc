import { execFile } from 'node:child_process'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { acquireLock } from '../src/lock.ts'
import { tempFolder } from './fixtures/temp-folder.ts'

test('has one holder, and can be taken again once it is given back', () => {
  const path = join(tempFolder(), 'lock')
  const first = acquireLock(path)
  expect(first.wasLeftBehind).toBe(false)
  expect(() => acquireLock(path)).toThrow(`another start (process ${process.pid}) is using this data folder`)
  first.release()
  expect(acquireLock(path).wasLeftBehind).toBe(false)
})

test.each([
  ['a dead process', { pid: 4_194_305, born: 'x' }],
  ['a process whose number another one has now', { pid: process.pid, born: 'long ago' }],
  ['nobody, with a torn file', undefined],
])('what %s left behind does not count', (_name, holder) => {
  const folder = tempFolder()
  const path = join(folder, 'lock')
  writeFileSync(path, holder === undefined ? '{"pi' : JSON.stringify(holder))
  const lock = acquireLock(path)
  expect(lock.wasLeftBehind).toBe(true)
  expect(JSON.parse(readFileSync(path, 'utf8')).pid).toBe(process.pid)
  lock.release()
  expect(readdirSync(folder)).toEqual([])
})

test('of several processes that find a dead lock at once, one gets it', async () => {
  const folder = tempFolder()
  const path = join(folder, 'lock')
  writeFileSync(path, JSON.stringify({ pid: 4_194_305, born: 'x' }))
  const code = `
    import { acquireLock } from ${JSON.stringify(join(import.meta.dirname, '../src/lock.ts'))}
    let got = 'none'
    try { acquireLock(${JSON.stringify(path)}); got = 'lock' } catch {}
    process.stdout.write(got)
    process.stdin.on('end', () => process.exit()).resume()`
  const outcomes = Array.from({ length: 6 }, () => {
    const run = promisify(execFile)(process.execPath, ['--input-type=module-typescript', '-e', code])
    const said = new Promise<string>(resolve => run.child.stdout?.once('data', text => resolve(String(text))))
    return { run, said }
  })
  const said = await Promise.all(outcomes.map(({ said }) => said))
  expect(said.filter(text => text === 'lock')).toHaveLength(1)
  for (const { run } of outcomes) run.child.stdin?.end()
  await Promise.all(outcomes.map(({ run }) => run))
}, 30_000)

import { execFile } from 'node:child_process'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { acquireLock } from '../src/lock.ts'
import { tempFolder } from './fixtures/command.ts'

test('has one holder, and can be acquired again after release', () => {
  const path = join(tempFolder(), 'lock')
  const first = acquireLock(path)
  expect(first.wasStale).toBe(false)
  expect(() => acquireLock(path)).toThrow(`the data directory is in use by another start (process ${process.pid})`)
  first.release()
  expect(acquireLock(path).wasStale).toBe(false)
})

test.each([
  ['a dead process', { pid: 4_194_305, startedAt: 'x' }],
  ['a process whose id was reused', { pid: process.pid, startedAt: 'long ago' }],
  ['an unknown process, with a truncated file', undefined],
])('the lock of %s is stale', (_name, holder) => {
  const folder = tempFolder()
  const path = join(folder, 'lock')
  writeFileSync(path, holder === undefined ? '{"pi' : JSON.stringify(holder))
  const lock = acquireLock(path)
  expect(lock.wasStale).toBe(true)
  expect(JSON.parse(readFileSync(path, 'utf8')).pid).toBe(process.pid)
  lock.release()
  expect(readdirSync(folder)).toEqual([])
})

test('only one of several processes replaces a stale lock', async () => {
  const folder = tempFolder()
  const path = join(folder, 'lock')
  writeFileSync(path, JSON.stringify({ pid: 4_194_305, startedAt: 'x' }))
  const code = `
    import { acquireLock } from ${JSON.stringify(join(import.meta.dirname, '../src/lock.ts'))}
    let result = 'none'
    try { acquireLock(${JSON.stringify(path)}); result = 'lock' } catch {}
    process.stdout.write(result)
    process.stdin.on('end', () => process.exit()).resume()`
  const outcomes = Array.from({ length: 6 }, () => {
    const run = promisify(execFile)(process.execPath, ['--input-type=module-typescript', '-e', code])
    const output = new Promise<string>(resolve => run.child.stdout?.once('data', text => resolve(String(text))))
    return { run, output }
  })
  const outputs = await Promise.all(outcomes.map(({ output }) => output))
  expect(outputs.filter(text => text === 'lock')).toHaveLength(1)
  for (const { run } of outcomes) run.child.stdin?.end()
  await Promise.all(outcomes.map(({ run }) => run))
})

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { hasProc, isRunning } from '@pool/test-kit/processes.ts'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { openDataDir } from './data-dir.ts'

let dataDir: string
beforeEach(() => {
  dataDir = mkdtempSync(join(tmpdir(), 'witness-storage-'))
})
afterEach(() => {
  rmSync(dataDir, { recursive: true })
})

test('is ours alone while it is open, and leaves nothing of its own', async () => {
  const storage = await openDataDir(join(dataDir, 'new'))
  storage.usedBy(process.pid)
  expect(statSync(storage.path).mode & 0o777).toBe(0o700)
  await expect(openDataDir(join(dataDir, 'new'))).rejects.toThrow('is using this data folder')
  storage[Symbol.dispose]()
  expect(readdirSync(storage.path)).toEqual([])
})

const leftBehind = (pid: string) => {
  mkdirSync(join(dataDir, 'lease-witness'))
  writeFileSync(join(dataDir, 'lease-witness/workerd.pid'), pid)
}

test('waits for the workerd that a killed start left behind', async () => {
  const left = spawn('/bin/sh', ['-c', 'sleep 0.5; exit 0', 'workerd'], { stdio: 'ignore' })
  const ended = once(left, 'exit')
  leftBehind(`${left.pid}\n`)
  using storage = await openDataDir(dataDir)
  expect(storage.path).toBe(join(dataDir, 'lease-witness'))
  if (hasProc) expect(isRunning(left.pid ?? 0)).toBe(false)
  await ended
})

test('refuses beside one that does not end', async () => {
  const left = spawn('/bin/sh', ['-c', 'sleep 30; exit 0', 'workerd'], { stdio: 'ignore', detached: true })
  leftBehind(`${left.pid}\n`)
  try {
    await expect(openDataDir(dataDir)).rejects.toThrow(`(process ${left.pid}) still uses this data folder`)
  } finally {
    if (left.pid !== undefined) process.kill(-left.pid, 'SIGKILL')
  }
  expect(readdirSync(join(dataDir, 'lease-witness'))).toEqual(['workerd.pid'])
})

test.each([
  ['a process that is something else', String(process.ppid)],
  ['nobody, with a torn file', '12x'],
  ['nobody, with an empty file', ''],
  ['a process that has ended', '4194305'],
])('does not wait for %s', async (_what, pid) => {
  leftBehind(pid)
  const started = performance.now()
  using storage = await openDataDir(dataDir)
  expect(storage.path).toContain(dataDir)
  expect(performance.now() - started).toBeLessThan(1_000)
})

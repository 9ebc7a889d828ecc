import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { until } from '@pool/test-kit/poll.ts'
import { hasProc, isRunning } from '@pool/test-kit/processes.ts'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { lockDataDir } from './data-dir.ts'

let dataDir: string
beforeEach(() => {
  dataDir = mkdtempSync(join(tmpdir(), 'witness-storage-'))
})
afterEach(() => {
  rmSync(dataDir, { recursive: true })
})

test('is locked while it is open, and empty after it is closed', async () => {
  const directory = await lockDataDir(join(dataDir, 'new'))
  directory.recordPid(process.pid)
  expect(statSync(directory.path).mode & 0o777).toBe(0o700)
  await expect(lockDataDir(join(dataDir, 'new'))).rejects.toThrow('the data directory is in use')
  directory[Symbol.dispose]()
  expect(readdirSync(directory.path)).toEqual([])
})

const writePidFile = (pid: string) => {
  mkdirSync(join(dataDir, 'lease-witness'))
  writeFileSync(join(dataDir, 'lease-witness/workerd.pid'), pid)
}

test('waits for the workerd of a killed start', async () => {
  const workerd = spawn('/bin/sh', ['-c', 'sleep 0.5; exit 0', 'workerd'], { stdio: 'ignore' })
  const exited = once(workerd, 'exit')
  writePidFile(`${workerd.pid}\n`)
  using directory = await lockDataDir(dataDir, 60_000)
  expect(directory.path).toBe(join(dataDir, 'lease-witness'))
  if (hasProc) expect(isRunning(workerd.pid ?? 0)).toBe(false)
  await exited
})

test('fails if that workerd does not exit', async () => {
  const workerd = spawn('/bin/sh', ['-c', 'sleep 30; exit 0', 'workerd'], { stdio: 'ignore', detached: true })
  // The system shows a program's arguments a moment after its start.
  if (hasProc) await until('it is seen', () => readFileSync(`/proc/${workerd.pid}/cmdline`, 'utf8').includes('workerd'))
  writePidFile(`${workerd.pid}\n`)
  try {
    await expect(lockDataDir(dataDir, 200)).rejects.toThrow(`(process ${workerd.pid}) still uses this data directory`)
  } finally {
    if (workerd.pid !== undefined) process.kill(-workerd.pid, 'SIGKILL')
  }
  expect(readdirSync(join(dataDir, 'lease-witness'))).toEqual(['workerd.pid'])
})

test.each([
  ['another program', String(process.ppid)],
  ['a truncated pid file', '12x'],
  ['an empty pid file', ''],
  ['a process that has exited', '4194305'],
])('does not wait for %s', async (_what, pid) => {
  writePidFile(pid)
  // Longer than the test may take.
  using directory = await lockDataDir(dataDir, 600_000)
  expect(directory.path).toContain(dataDir)
})

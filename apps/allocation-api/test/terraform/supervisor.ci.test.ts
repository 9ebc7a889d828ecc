import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { until } from '@pool/test-kit/poll.ts'
import { expect, onTestFinished, test } from 'vitest'
import { findProcesses } from './support/terraform.ts'

const supervisorPath = fileURLToPath(new URL('../../src/deployments/terraform/supervisor.sh', import.meta.url))

const isRunning = (pid: number): boolean => {
  try {
    process.kill(pid, 0)
    return true
  } catch {
    return false
  }
}

/** A group whose leader runs `script`, with `$DIR` for its files, and a supervisor that gives it `steps` of 0.1 s. */
const superviseGroup = async (script: string, steps: number) => {
  const directory = await mkdtemp(join(tmpdir(), 'supervisor-'))
  const env = { PATH: process.env.PATH, DIR: directory }
  const leader = spawn('/bin/sh', ['-c', script], { env, detached: true, stdio: ['ignore', 'pipe', 'pipe'] })
  const supervisor: ChildProcess = spawn('/bin/sh', [supervisorPath, String(leader.pid), String(steps)], {
    stdio: ['pipe', 'ignore', 'ignore', leader.stdout, leader.stderr],
  })
  onTestFinished(async () => {
    supervisor.kill('SIGKILL')
    if (leader.exitCode === null && leader.signalCode === null) process.kill(-(leader.pid ?? 0), 'SIGKILL')
    await rm(directory, { recursive: true })
  })
  await until('the leader is ready', () => existsSync(join(directory, 'ready')))
  return {
    leader,
    directory,
    supervisorExited: once(supervisor, 'exit'),
    leaderExited: once(leader, 'exit'),
    /** The service reports that the command has ended. */
    sendLine: () => supervisor.stdin?.end('ended\n'),
    /** The service dies. */
    closeInput: () => supervisor.stdin?.end(),
    /** The service interrupts the group, and dies. */
    interruptAndClose: () => {
      supervisor.stdin?.end('interrupted\n')
      process.kill(-(leader.pid ?? 0), 'SIGINT')
    },
    has: (file: string) => existsSync(join(directory, file)),
  }
}

test('after a line on standard input the group keeps running', async () => {
  const group = await superviseGroup('touch "$DIR/ready"; while :; do sleep 0.05; done', 1)
  group.sendLine()
  expect(await group.supervisorExited).toEqual([0, null])
  expect(isRunning(group.leader.pid ?? 0)).toBe(true)
})

test('at the end of standard input the group gets SIGINT and time to save its state', async () => {
  const save = `trap 'sleep 0.3; touch "$DIR/saved"; exit 7' INT; touch "$DIR/ready"; while :; do sleep 0.05; done`
  const group = await superviseGroup(save, 600)
  group.closeInput()
  expect(await group.leaderExited).toEqual([7, null])
  expect(group.has('saved')).toBe(true)
  await group.supervisorExited
})

test('a group that was interrupted gets no second SIGINT, at which Terraform would end without saving', async () => {
  const save = `trap 'echo >> "$DIR/count"; [ -e "$DIR/go" ] && exit 7' INT; touch "$DIR/ready"; while :; do sleep 0.05; [ -e "$DIR/go" ] && exit 7; done`
  const group = await superviseGroup(save, 600)
  group.interruptAndClose()
  await until('it was interrupted', () => group.has('count'))
  writeFileSync(join(group.directory, 'go'), '')
  expect(await group.leaderExited).toEqual([7, null])
  await group.supervisorExited
  expect(readFileSync(join(group.directory, 'count'), 'utf8')).toBe('\n')
})

test('a group that ignores SIGINT is killed when its time is over, with its children', async () => {
  const ignore = `trap '' INT; (trap '' INT; while :; do touch "$DIR/child"; sleep 0.05; done) & touch "$DIR/ready"; wait`
  const group = await superviseGroup(ignore, 3)
  group.closeInput()
  expect(await group.leaderExited).toEqual([null, 'SIGKILL'])
  await group.supervisorExited
  await until('nothing runs', () => findProcesses(group.directory).length === 0)
})

test('reads the output while it waits, so that the leader does not block on a full pipe', async () => {
  const report = `trap 'head -c 500000 /dev/zero; head -c 500000 /dev/zero >&2; touch "$DIR/saved"; exit 0' INT; touch "$DIR/ready"; while :; do sleep 0.05; done`
  const group = await superviseGroup(report, 600)
  group.closeInput()
  expect(await group.leaderExited).toEqual([0, null])
  expect(group.has('saved')).toBe(true)
  await group.supervisorExited
})

import { spawn } from 'node:child_process'
import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { shouldSkip } from '@pool/test-kit/optional-deps.ts'
import { until } from '@pool/test-kit/poll.ts'
import { hasProc, isRunning, listProcessTree, readProcessTree, WITHOUT_PROC } from '@pool/test-kit/processes.ts'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'

const script = fileURLToPath(new URL('./fixtures/start-and-wait.mjs', import.meta.url))
const testing = fileURLToPath(new URL('../src/index.ts', import.meta.url))
const SERVICES = ['api', 'workerd', 'postgres']

let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'killed-'))
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

/** A test process with running services, and all of its descendants. */
const startTestProcess = async (code = '') => {
  const args = code === '' ? [script, testing, ...SERVICES] : ['--input-type=module', '--eval', code]
  const child = spawn(process.execPath, args, {
    env: { ...process.env, TMPDIR: folder },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const exited = new Promise<number | null>(resolve => child.once('exit', resolve))
  for await (const line of createInterface(child.stdout)) if (line === 'started') break
  const pid = child.pid ?? 0
  const processes = listProcessTree(pid)
  const hosts = readProcessTree(pid).filter(({ command }) => command.endsWith('/host/main.ts'))
  return { pid, processes, hosts: hosts.map(host => host.pid), exited }
}

const expectNothingLeft = async (processes: readonly number[]): Promise<void> => {
  await until('every process has ended', () => !processes.some(isRunning))
  await until('no file is left', () => readdirSync(folder).length === 0)
}

describe.skipIf(shouldSkip(hasProc ? undefined : WITHOUT_PROC))('nothing is left behind', () => {
  test('when the test process is killed', async () => {
    const { pid, processes, hosts } = await startTestProcess()
    expect(hosts).toHaveLength(SERVICES.length)
    expect(processes.length).toBeGreaterThan(3 * SERVICES.length)
    process.kill(pid, 'SIGKILL')
    await expectNothingLeft(processes)
  })

  test('when the hosts of the services are killed with it', async () => {
    const { pid, processes, hosts } = await startTestProcess()
    for (const each of [...hosts, pid]) process.kill(each, 'SIGKILL')
    await expectNothingLeft(processes)
  })

  test('when the test process ends without a stop: a service does not keep it alive', async () => {
    const code = `
      import { startAllocationApi } from ${JSON.stringify(testing)}
      await startAllocationApi()
      process.stdout.write('started\\n')`
    const { processes, exited } = await startTestProcess(code)
    expect(await exited).toBe(0)
    await expectNothingLeft(processes)
  })
})

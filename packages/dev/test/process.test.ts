import { spawn } from 'node:child_process'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { until } from '@pool/test-kit/poll.ts'
import { expect, test } from 'vitest'
import { isAlive } from '../src/poll.ts'
import { freePort } from '../src/ports.ts'
import { COMPILE_CACHE, SERVICE_NODE_OPTIONS, startNode } from '../src/process.ts'
import { tempFolder } from './fixtures/command.ts'

const entry = join(import.meta.dirname, 'fixtures/fake-api.ts')

test('is ready after its ready line, and stops on request', async () => {
  const port = await freePort()
  const lines: string[] = []
  const api = startNode({ entry, env: { PORT: String(port) }, onLine: line => lines.push(line) })
  expect(await api.ready).toEqual({ msg: 'ready', port })
  expect(await api.stop()).toEqual({ code: 0, signal: null })
  expect(lines.at(-1)).toBe('{"msg":"drained"}')
  expect(api.lastLines()).toEqual(lines)
})

test('keeps the last lines also if nothing reads them', async () => {
  const api = startNode({ entry, env: { PORT: String(await freePort()) } })
  await api.ready
  await api.stop()
  expect(api.lastLines().at(-1)).toBe('{"msg":"drained"}')
  expect(api.lastLines().some(line => line.includes('"msg":"ready"'))).toBe(true)
})

test('its output goes to a log file', async () => {
  const logFile = join(tempFolder(), 'api.log')
  const port = await freePort()
  const api = startNode({ entry, env: { PORT: String(port) }, readyFrom: 'ipc', logFile })
  expect(await api.ready).toEqual({ msg: 'ready', port })
  expect(await api.stop()).toEqual({ code: 0, signal: null })
  expect(readFileSync(logFile, 'utf8').trim().split('\n').slice(1)).toEqual([
    `{"msg":"ready","port":${port}}`,
    '{"msg":"draining","reason":"SIGTERM"}',
    '{"msg":"drained"}',
  ])
  expect(api.lastLines().at(-1)).toBe('{"msg":"drained"}')
})

test('an exit before it is ready is reported with the last lines of the log file', async () => {
  const logFile = join(tempFolder(), 'api.log')
  writeFileSync(logFile, 'earlier\n'.repeat(10_000))
  const api = startNode({ entry, env: { END_WITH: '3' }, readyFrom: 'ipc', logFile })
  await expect(api.ready).rejects.toThrow(/exit code 3.*\n(earlier\n){19}fixture exits as END_WITH requests/)
})

test.each([{}, { readyFrom: 'ipc', onLine: () => {} }] as const)('a log file with %o is rejected', options => {
  expect(() => startNode({ entry, env: {}, logFile: '/dev/null', ...options })).toThrow("use readyFrom: 'ipc'")
})

test('gets only the given environment, PATH and the compile cache', async () => {
  const isReady = (line: Readonly<Record<string, unknown>>) => line.msg === 'environment'
  const api = startNode({ entry, env: { PORT: '0', QUIET: 'true' }, isReady })
  const { env } = await api.ready
  expect(Object.keys(Object(env)).filter(name => !name.startsWith('NODE_'))).toEqual(['PATH', 'PORT', 'QUIET'])
  expect(Object(env).NODE_COMPILE_CACHE).toBe(COMPILE_CACHE)
  expect(await api.kill()).toEqual({ code: null, signal: 'SIGKILL' })
})

test.each([
  ['', 3 * 16 + 256],
  ['--max-old-space-size=128', 3 * 16 + 128],
])('bounds the heap; NODE_OPTIONS of "%s" has precedence', async (options, mib) => {
  const isReady = (line: Readonly<Record<string, unknown>>) => line.msg === 'environment'
  const api = startNode({ entry, env: { PORT: '0', NODE_OPTIONS: options }, isReady })
  const { heapLimit } = await api.ready
  await api.kill()
  expect(heapLimit).toBe(mib * 1_048_576)
})

test.each([
  ['apps/allocation-api/package.json', 1],
  ['apps/lease-witness/package.json', 2],
  ['infra/systemd/allocation-api.service', 1],
  ['infra/systemd/lease-witness.service', 1],
  ['infra/image/Containerfile', 1],
  ['docs/install/single-host.md', 2],
])('%s starts each service with the options', (file, count) => {
  const text = readFileSync(join(import.meta.dirname, '../../..', file), 'utf8')
  const all = text.match(/NODE_OPTIONS="?'?[^"'\n]*|(?<="start[^"]*": )"[^"]*/g) ?? []
  expect(all.filter(start => start.includes(SERVICE_NODE_OPTIONS))).toHaveLength(count)
  expect(text.match(/--max-\S+-space-size/g)).toHaveLength(2 * count)
})

test('is killed after the stop timeout', async () => {
  const api = startNode({ entry, env: { PORT: '0', DRAIN_MS: '60000' } })
  await api.ready
  expect(await api.stop('SIGTERM', 100)).toEqual({ code: null, signal: 'SIGKILL' })
})

test('an exit before it is ready is reported with the last lines', async () => {
  const api = startNode({ entry, env: { END_WITH: '3' } })
  await expect(api.ready).rejects.toThrow(/exit code 3.*\nfixture exits as END_WITH requests/)
  expect(await api.exited).toEqual({ code: 3, signal: null })
})

test('exits when its parent is killed', async () => {
  const log = join(tempFolder(), 'log')
  const parent = join(tempFolder(), 'parent.ts')
  writeFileSync(
    parent,
    `import { appendFileSync } from 'node:fs'
     import { startNode } from ${JSON.stringify(join(import.meta.dirname, '../src/process.ts'))}
     const child = startNode({ entry: ${JSON.stringify(entry)}, env: { PORT: '0' } })
     await child.ready
     appendFileSync(${JSON.stringify(log)}, String(child.pid))
     process.kill(process.pid, 'SIGKILL')`,
  )
  spawn(process.execPath, [parent], { stdio: 'ignore' })
  await until('the log exists', () => existsSync(log))
  const pid = Number(readFileSync(log, 'utf8'))
  await until('the process has exited', () => !isAlive(pid))
})

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { findRunningPrograms } from './running-programs.ts'
import { isSkipped } from './skip.ts'

test.skipIf(isSkipped)('a gateway exits and removes its files when the process that started it is killed', async () => {
  const starter = spawn(process.execPath, [fileURLToPath(new URL('./start-gateway.ts', import.meta.url))])
  const [line] = await once(starter.stdout, 'data')
  const folder = String(line).trim()
  expect(findRunningPrograms(folder)).toHaveLength(3)
  starter.kill('SIGKILL')
  await once(starter, 'exit')
  const end = performance.now() + 20_000
  while ((findRunningPrograms(folder).length > 0 || existsSync(folder)) && performance.now() < end) await sleep(10)
  expect(findRunningPrograms(folder)).toEqual([])
  expect(existsSync(folder)).toBe(false)
})

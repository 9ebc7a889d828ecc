import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { isSkipped } from './parts.ts'
import { running } from './running.ts'

test.skipIf(isSkipped)('a gateway goes with the process that started it, though that is killed', async () => {
  const starter = spawn(process.execPath, [fileURLToPath(new URL('./starter.ts', import.meta.url))])
  const [line] = await once(starter.stdout, 'data')
  const folder = String(line).trim()
  expect(running(folder)).toHaveLength(3)
  starter.kill('SIGKILL')
  await once(starter, 'exit')
  const end = performance.now() + 20_000
  while ((running(folder).length > 0 || existsSync(folder)) && performance.now() < end) await sleep(10)
  expect(running(folder)).toEqual([])
  expect(existsSync(folder)).toBe(false)
})

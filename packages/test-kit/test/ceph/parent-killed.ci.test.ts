import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { findRunningPrograms, isSkipped } from './support.ts'

test.skipIf(isSkipped)('a gateway exits and removes its files when the process that started it is killed', async () => {
  const starter = spawn(process.execPath, [fileURLToPath(new URL('./start-gateway.ts', import.meta.url))], {
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  const exited = once(starter, 'exit').then(() => Promise.reject(new Error('the starter exited before it was ready')))
  exited.catch(() => {})
  const [line] = await Promise.race([once(starter.stdout, 'data'), exited])
  const folder = String(line).trim()
  expect(findRunningPrograms(folder)).toHaveLength(3)
  starter.kill('SIGKILL')
  await once(starter, 'exit')
  const isRunning = () => findRunningPrograms(folder).length > 0
  await expect.poll(() => [isRunning(), existsSync(folder)]).toEqual([false, false])
})

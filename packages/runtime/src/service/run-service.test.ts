import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { expect, test } from 'vitest'

const module = new URL('./run-service.ts', import.meta.url)

test('a parent with an IPC channel learns the address of a service that logs nothing, and its exit stops the service', async () => {
  const source = `import { runService } from '${module}'
    const handle = setInterval(() => {}, 1_000)
    await runService(async () => ({ address: { port: 8_080 }, stop: async () => clearInterval(handle) }), () => {})`
  const child = spawn(process.execPath, ['--input-type=module', '--eval', source], {
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  })
  const exited = once(child, 'exit')
  const first = await Promise.race([once(child, 'message'), exited])
  expect(first[0]).toEqual({ msg: 'ready', port: 8_080 })
  child.disconnect()
  expect(await exited).toEqual([0, null])
})

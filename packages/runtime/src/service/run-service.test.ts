import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { expect, test } from 'vitest'

const module = new URL('./run-service.ts', import.meta.url)

const spawnWithChannel = (source: string) =>
  spawn(process.execPath, ['--input-type=module', '--eval', source], { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] })

test('a parent with an IPC channel learns the address of a service that logs nothing, and its exit stops the service', async () => {
  const source = `import { runService } from '${module}'
    const handle = setInterval(() => {}, 1_000)
    await runService(async () => ({ address: { port: 8_080 }, stop: async () => clearInterval(handle) }), () => {})`
  const child = spawnWithChannel(source)
  const exited = once(child, 'exit')
  const first = await Promise.race([once(child, 'message'), exited])
  expect(first[0]).toEqual({ msg: 'ready', port: 8_080 })
  child.disconnect()
  expect(await exited).toEqual([0, null])
})

// `integration/old-generation` shows what the flag does; V8 does not report it.
test('a service turns pretenuring off before it starts', async () => {
  const source = `import { syncBuiltinESMExports } from 'node:module'
    import v8 from 'node:v8'
    const { setFlagsFromString } = v8
    const flags = []
    v8.setFlagsFromString = flag => {
      flags.push(flag)
      setFlagsFromString(flag)
    }
    syncBuiltinESMExports()
    const { runService } = await import('${module}')
    const start = async () => ({ address: { flags: [...flags] }, stop: async () => {} })
    await runService(start, () => {})
    process.disconnect()`
  const child = spawnWithChannel(source)
  const exited = once(child, 'exit')
  const [ready] = await Promise.race([once(child, 'message'), exited])
  expect(ready).toEqual({ msg: 'ready', flags: ['--no-allocation-site-pretenuring'] })
  await exited
})

/** Runs a process that calls `endProcess` with this body of `stop`, after `setUp`. It has an IPC channel. */
const run = async (stop: string, timeoutMs: number, setUp = '') => {
  const source = `import { endProcess } from '${module}'
    ${setUp}
    process.on('disconnect', () => {})
    process.on('unhandledRejection', () => {})
    void endProcess(process, ${timeoutMs}, async withoutLimit => { ${stop} })`
  const child = spawn(process.execPath, ['--input-type=module', '--eval', source], {
    stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
  })
  let errors = ''
  child.stderr?.setEncoding('utf8').on('data', text => {
    errors += text
  })
  const [code, signal] = await once(child, 'close')
  return { code, signal, errors }
}

const HANDLE = 'setInterval(() => {}, 1_000)'
const LONG_MS = 60_000

test('the process ends when stop has closed what keeps its event loop alive', async () => {
  const result = await run('clearInterval(handle)', LONG_MS, `const handle = ${HANDLE}`)
  expect(result).toEqual({ code: 0, signal: null, errors: '' })
})

test('a failed stop is an exit code', async () => {
  const result = await run('throw new Error()', LONG_MS)
  expect(result).toEqual({ code: 1, signal: null, errors: '' })
})

test('the time of work without a limit does not count', async () => {
  const work = 'new Promise(done => setTimeout(done, 3_000))'
  expect(await run(`await withoutLimit(${work})`, 2_000)).toEqual({ code: 0, signal: null, errors: '' })
})

test.each([
  ['stop does not finish', `${HANDLE}; await new Promise(() => {})`],
  [
    'it does not after work without a limit',
    `${HANDLE}; await withoutLimit(Promise.resolve()); await new Promise(() => {})`,
  ],
  ['something keeps the event loop alive after the stop', HANDLE],
])('the process is killed after the timeout if %s', async (_, stop) => {
  const result = await run(stop, 100)
  expect(result).toEqual({ code: null, signal: 'SIGKILL', errors: 'stop: not finished within 0.1 s\n' })
})

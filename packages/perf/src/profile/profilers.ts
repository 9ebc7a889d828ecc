import { once } from 'node:events'
import { access, readFile, rm } from 'node:fs/promises'
import { setTimeout as sleep } from 'node:timers/promises'
import type { CpuProfile } from './cpu-profile.ts'

/** Profiles a process from `start` to `stop`. */
export interface Profiler {
  readonly start: () => Promise<void>
  readonly stop: () => Promise<CpuProfile>
}

const INTERVAL_US = 200
const MAX_WAIT_MS = 60_000

const waitForFile = async (file: string): Promise<void> => {
  const until = performance.now() + MAX_WAIT_MS
  while (
    !(await access(file).then(
      () => true,
      () => false,
    ))
  ) {
    if (performance.now() > until) throw new Error(`the service did not write ${file}`)
    await sleep(20)
  }
}

/** The environment of a Node service that can be profiled. */
export const toProfiledEnv = (file: string): Readonly<Record<string, string>> => ({
  NODE_OPTIONS: `--import=${new URL('preload.ts', import.meta.url).href}`,
  PROFILE_FILE: file,
})

/** Of a Node service that was started with `toProfiledEnv`. */
export const createNodeProfiler = (pid: number, file: string): Profiler => ({
  async start() {
    process.kill(pid, 'SIGUSR2')
    await waitForFile(`${file}.started`)
  },
  async stop() {
    process.kill(pid, 'SIGUSR2')
    await waitForFile(file)
    const profile = JSON.parse(await readFile(file, 'utf8'))
    await rm(file)
    return profile
  },
})

/** Of the worker in a workerd with an inspector port. */
export const createWorkerdProfiler = async (inspectorPort: number): Promise<Profiler> => {
  const targets: { webSocketDebuggerUrl: string }[] = await fetch(`http://127.0.0.1:${inspectorPort}/json`).then(
    response => response.json() as never,
  )
  const socket = new WebSocket(targets[0]?.webSocketDebuggerUrl ?? '')
  await once(socket, 'open')
  let requests = 0
  const post = async (method: string, params: object = {}): Promise<{ profile?: CpuProfile }> => {
    requests += 1
    const id = requests
    const { promise, resolve, reject } = Promise.withResolvers<{ profile?: CpuProfile }>()
    const receive = (event: MessageEvent): void => {
      const message = JSON.parse(String(event.data))
      if (message.id !== id) return
      socket.removeEventListener('message', receive)
      if (message.error) reject(new Error(`${method}: ${message.error.message}`))
      else resolve(message.result)
    }
    socket.addEventListener('message', receive)
    socket.send(JSON.stringify({ id, method, params }))
    return await promise
  }
  return {
    async start() {
      await post('Profiler.enable')
      await post('Profiler.setSamplingInterval', { interval: INTERVAL_US })
      await post('Profiler.start')
    },
    async stop() {
      const { profile } = await post('Profiler.stop')
      socket.close()
      if (!profile) throw new Error('workerd returned no profile')
      return profile
    },
  }
}

import { execFile } from 'node:child_process'
import { accessSync, constants, existsSync } from 'node:fs'
import { promisify } from 'node:util'
import { describe, expect, it } from 'vitest'

const run = promisify(execFile)
const module = new URL('../../src/bench/environment/limited-cores.ts', import.meta.url).href

const canLimit = ['/sys/fs/cgroup/cpu/cgroup.procs', '/sys/fs/cgroup/cgroup.subtree_control'].some(file => {
  try {
    accessSync(file, constants.W_OK)
    return process.getuid?.() === 0
  } catch {
    return false
  }
})

describe('limited cores', () => {
  it.runIf(canLimit)('give a process its share, and the group ends', async () => {
    const script = `
      const { limitCores } = await import(${JSON.stringify(module)})
      const stop = limitCores(0.2, 1)
      const [started, cpu] = [performance.now(), process.cpuUsage()]
      while (performance.now() - started < 1_000) Math.hypot(1, 2)
      const { user, system } = process.cpuUsage(cpu)
      const share = (user + system) / 1_000 / (performance.now() - started)
      await stop()
      console.log(JSON.stringify({ share, pid: process.pid }))`
    const { stdout } = await run(process.execPath, ['--input-type=module', '-e', script])
    const { share, pid } = JSON.parse(stdout)
    expect(share).toBeGreaterThan(0)
    expect(share).toBeLessThan(0.3)
    for (const parent of ['/sys/fs/cgroup', '/sys/fs/cgroup/cpu'])
      expect(existsSync(`${parent}/pool-bench-${pid}`)).toBe(false)
  })
})

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import {
  findDescendants,
  hasProc,
  isRunning,
  parseIsRunning,
  parseMemory,
  readCpuUs,
  readProcessTree,
} from './processes.ts'

describe('a process runs', () => {
  const toStat = (state: string, threads: number) =>
    `4 (a) b (c) ${state} 1 4 4 0 -1 4 0 0 0 0 5 6 0 0 20 0 ${threads} 0 9`

  it.each([
    ['S', 1, true],
    ['Z', 3, true],
    ['Z', 1, false],
    ['X', 1, false],
  ])('in state %s with %i threads: %s', (state, threads, expected) => {
    expect(parseIsRunning(toStat(state, threads))).toBe(expected)
  })

  it('if it is this one, and not if there is none', () => {
    expect([isRunning(process.pid), isRunning(2 ** 30)]).toEqual([existsSync('/proc'), false])
  })
})

describe('the CPU time of a process', () => {
  it.runIf(hasProc)('increases while the process computes, and is unknown without a process', () => {
    const before = readCpuUs(process.pid)
    const started = process.cpuUsage()
    while (process.cpuUsage(started).user < 30_000) Math.hypot(performance.now(), 1)
    const used = (readCpuUs(process.pid) ?? 0) - (before ?? 0)
    expect(used).toBeGreaterThan(20_000)
    expect(readCpuUs(2 ** 30)).toBeNull()
  })
})

describe('a process tree', () => {
  it('contains all descendants', () => {
    const parents = new Map([
      [1, 0],
      [2, 1],
      [3, 2],
      [4, 1],
      [5, 4],
      [6, 3],
    ])
    expect(findDescendants(2, parents)).toEqual([2, 3, 6])
    expect(findDescendants(1, parents)).toEqual([1, 2, 4, 3, 5, 6])
  })

  it.runIf(existsSync('/proc/self/smaps_rollup'))('has the memory of each process', async () => {
    const child = spawn(process.execPath, ['-e', 'process.stdout.write("up"); setInterval(() => {}, 1000)'])
    try {
      await once(child.stdout, 'data')
      const [own, ...others] = readProcessTree(child.pid ?? 0)
      expect(others).toEqual([])
      expect(own?.command).toContain('setInterval')
      expect(own?.residentBytes).toBeGreaterThan(10e6)
      expect(own?.proportionalBytes).toBeGreaterThan(1e6)
      expect(own?.proportionalBytes).toBeLessThanOrEqual(own?.residentBytes ?? 0)
    } finally {
      child.kill()
    }
    await once(child, 'close')
    expect(readProcessTree(child.pid ?? 0)).toEqual([])
  })
})

describe('memory', () => {
  it('is in bytes', () => {
    const status = 'Name:\tnode\nVmPeak:\t 9 kB\nVmHWM:\t     200 kB\nVmRSS:\t     100 kB\n'
    expect(parseMemory(status)).toEqual({ residentBytes: 102_400, peakBytes: 204_800 })
  })
  it('is null where the system does not report it', () => {
    expect(parseMemory('')).toBeNull()
  })
})

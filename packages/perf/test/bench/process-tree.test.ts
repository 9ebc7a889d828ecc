import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { descendants, parentOf, readTree } from '../../src/bench/process-tree.ts'

describe('the processes below one', () => {
  it.each([
    ['4 (node) S 1 4 4 0', 1],
    ['4 (a) b (c) S 77 4 4 0', 77],
  ])('%s', (stat, parent) => {
    expect(parentOf(stat)).toBe(parent)
  })

  it('are its children and theirs', () => {
    const parents = new Map([
      [1, 0],
      [2, 1],
      [3, 2],
      [4, 1],
      [5, 4],
      [6, 3],
    ])
    expect(descendants(2, parents)).toEqual([2, 3, 6])
    expect(descendants(1, parents)).toEqual([1, 2, 4, 3, 5, 6])
  })

  it.runIf(existsSync('/proc/self/smaps_rollup'))('are found with their memory', async () => {
    const child = spawn(process.execPath, ['-e', 'process.stdout.write("up"); setInterval(() => {}, 1000)'])
    try {
      await once(child.stdout, 'data')
      const [own, ...others] = await readTree(child.pid ?? 0)
      expect(others).toEqual([])
      expect(own?.command).toContain('setInterval')
      expect(own?.residentBytes).toBeGreaterThan(10e6)
      expect(own?.proportionalBytes).toBeGreaterThan(1e6)
      expect(own?.proportionalBytes).toBeLessThanOrEqual(own?.residentBytes ?? 0)
    } finally {
      child.kill()
    }
    await once(child, 'close')
    expect(await readTree(child.pid ?? 0)).toEqual([])
  })
})

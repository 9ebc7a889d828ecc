import { describe, expect, it } from 'vitest'
import { toLabel } from '../../src/bench/environment/seed.ts'
import { createCounter } from '../../src/bench/load/stream-reader.ts'
import { sumByLabel } from '../../src/bench/sections/allocation.ts'

describe('a counter', () => {
  const text = 'xx"row":1,"row":2"row"row":'
  it.each([1, 2, 3, 5, 7, 100])('finds every occurrence in chunks of %d bytes', size => {
    const counter = createCounter('"row":')
    const bytes = Buffer.from(text)
    for (let at = 0; at < bytes.length; at += size) counter.add(bytes.subarray(at, at + size))
    expect(counter.count()).toBe(text.split('"row":').length - 1)
  })
})

describe('metrics', () => {
  it('are summed by a label', () => {
    const text = [
      '# HELP calls_count x',
      'calls_count{operation="read",outcome="done"} 5',
      'calls_count{operation="read",outcome="unavailable"} 2',
      'calls_count{outcome="done",operation="apply"} 3',
      'calls_count{suboperation="apply"} 100',
      'calls_sum{operation="read"} 100',
      'calls_count 100',
    ].join('\n')
    expect(sumByLabel(text, 'calls_count', 'operation')).toEqual({ read: 7, apply: 3 })
  })
})

describe('labels', () => {
  it('are valid, unique, and not adjacent in the sort order', () => {
    const labels = Array.from({ length: 10_000 }, (_, n) => toLabel(n))
    expect(new Set(labels).size).toBe(labels.length)
    for (const label of labels) expect(label).toMatch(/^t[0-9a-f]{8}$/)
    expect(labels.toSorted()).not.toEqual(labels)
  })
})

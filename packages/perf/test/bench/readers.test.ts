import { describe, expect, it } from 'vitest'
import { labelOf } from '../../src/bench/labels.ts'
import { readAnswer } from '../../src/bench/load/answer.ts'
import { memoryOf } from '../../src/bench/memory.ts'
import { sumByLabel } from '../../src/bench/metrics-text.ts'
import { createCounter } from '../../src/bench/occurrences.ts'

const answer = (head: string, body: string) => Buffer.from(`${head}\r\n\r\n${body}`)

describe('an answer of HTTP', () => {
  it('is read when it is whole, and not before', () => {
    const whole = answer('HTTP/1.1 201 Created\r\nX-Request-Id: a\r\nContent-Length: 4', '{"a"')
    for (let length = 0; length < whole.length; length += 1) {
      expect(readAnswer(whole.subarray(0, length)).kind).toMatch(/more|broken/)
    }
    expect(readAnswer(whole)).toEqual({ kind: 'answer', answer: { status: 201, body: '{"a"' } })
  })

  it.each([
    ['more than one', answer('HTTP/1.1 200 OK\r\ncontent-length: 1', 'ab')],
    ['one in chunks', answer('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked', '0')],
    ['the last one of its connection', answer('HTTP/1.1 413 X\r\nConnection: close\r\nContent-Length: 0', '')],
    ['something else', answer('SSH-2.0-x\r\nContent-Length: 0', '')],
  ])('%s is refused', (_, bytes) => {
    expect(readAnswer(bytes).kind).toBe('broken')
  })
})

describe('occurrences', () => {
  const text = 'xx"row":1,"row":2"row"row":'
  it.each([1, 2, 3, 5, 7, 100])('are counted over pieces of %d bytes', size => {
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

describe('memory', () => {
  it('is in bytes', () => {
    const status = 'Name:\tnode\nVmPeak:\t 9 kB\nVmHWM:\t     200 kB\nVmRSS:\t     100 kB\n'
    expect(memoryOf(status)).toEqual({ residentBytes: 102_400, peakBytes: 204_800 })
  })
  it('is unknown where the system does not say', () => {
    expect(memoryOf('')).toBeNull()
  })
})

describe('labels', () => {
  it('are valid, each another one, and far from their neighbours', () => {
    const labels = Array.from({ length: 10_000 }, (_, n) => labelOf(n))
    expect(new Set(labels).size).toBe(labels.length)
    for (const label of labels) expect(label).toMatch(/^t[0-9a-f]{8}$/)
    expect(labels.toSorted()).not.toEqual(labels)
  })
})

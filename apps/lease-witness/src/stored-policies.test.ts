import { describe, expect, test } from 'vitest'
import { REFRESH_MS, StoredPolicies } from './stored-policies.ts'

const START = 1_800_000_000_000

/** A store that returns `values` one after the other; an Error is thrown. */
const createStore = (...values: (string | Error)[]) => {
  const errors: unknown[] = []
  const policies = new StoredPolicies()
  let reads = 0
  const get = async () => {
    const value = values[Math.min(reads, values.length - 1)]
    reads += 1
    if (value instanceof Error) throw value
    return value ?? ''
  }
  return {
    errors,
    reads: () => reads,
    readAt: (now: number) => policies.read({ get }, now, error => errors.push(error)),
  }
}

describe('policies in a store', () => {
  test('are read at most once per interval', async () => {
    const store = createStore('a', 'b')
    expect(await store.readAt(START)).toBe('a')
    expect(await store.readAt(START + REFRESH_MS - 1)).toBe('a')
    expect(store.reads()).toBe(1)
    expect(await store.readAt(START + REFRESH_MS)).toBe('b')
  })

  test('are read by one request, while the others use the last text', async () => {
    const store = createStore('a', 'b')
    await store.readAt(START)
    const later = START + REFRESH_MS
    expect(await Promise.all([store.readAt(later), store.readAt(later), store.readAt(later)])).toEqual(['b', 'a', 'a'])
    expect(store.reads()).toBe(2)
  })

  test('stay valid while the store does not respond, and the store is asked once per interval', async () => {
    const down = new Error('down')
    const store = createStore('a', down)
    await store.readAt(START)
    const texts = [0, 1, REFRESH_MS].map(ms => store.readAt(START + REFRESH_MS + ms))
    expect(await Promise.all(texts)).toEqual(['a', 'a', 'a'])
    expect(store.errors).toEqual([down, down])
  })

  test('are asked for by every request until the store has responded once', async () => {
    const store = createStore(new Error('down'), new Error('down'), 'a')
    expect([await store.readAt(START), await store.readAt(START), await store.readAt(START)]).toEqual([
      undefined,
      undefined,
      'a',
    ])
  })

  test('are read again after the clock was set back', async () => {
    const store = createStore('a', 'b')
    await store.readAt(START)
    expect(await store.readAt(START - 1)).toBe('b')
  })
})

import { setImmediate as quiet } from 'node:timers/promises'
import type { Deployment } from '@pool/contract'
import { describe, expect, test } from 'vitest'
import type { StoredLine } from './domain/types.ts'
import { follow, type Part } from './tail-log.ts'

const linesTo = (last: number): StoredLine[] =>
  Array.from({ length: last }, (_, at) => ({
    seq: at + 1,
    at: new Date(at),
    phase: 'apply',
    level: 'info',
    message: `line ${at + 1}`,
  }))
const deployment = (status: Deployment['status']): Deployment => ({
  id: '00000000-0000-4000-8000-000000000001',
  status,
  startedAt: '2026-01-31T12:00:00.000Z',
  finishedAt: null,
  sovereignFQDN: 'acme.pool.test',
  region: 'fsn1',
  objectStorageRegion: '',
  objectStorageBucket: '',
  numEvents: 0,
})
const shown = (part: Part) => {
  if (part === 'idle') return part
  return 'kind' in part ? part.deployment.status : `${part.at(0)?.seq}-${part.at(-1)?.seq}`
}

/** A world in which nothing happens but what the test does; `asked` is what the verb has asked of it. */
const stage = (lines = 0, status: Deployment['status'] | null = 'provisioning') => {
  const world = { lines, status, asked: [] as string[], waits: [] as ((isNews: boolean) => void)[] }
  const hooks = { onLines: () => {} }
  const start = follow({
    read: async () => {
      world.asked.push('read')
      return world.status && deployment(world.status)
    },
    readLines: async (_, after, limit) => {
      world.asked.push(`lines ${after}`)
      const page = linesTo(world.lines).filter(({ seq }) => seq > after)
      hooks.onLines()
      return page.slice(0, limit)
    },
    news: {
      changed: (_, ms) => {
        world.asked.push(`wait ${ms}`)
        const { promise, resolve } = Promise.withResolvers<boolean>()
        world.waits.push(resolve)
        return promise
      },
    },
    pollMs: 1_000,
    idleMs: 2_500,
  })
  const gone = new AbortController()
  const parts: string[] = []
  /** Takes all that comes until there is nothing to do but wait. */
  const run = async (after = 0) => {
    const outcome = await start('id', after, gone.signal)
    if (outcome.kind !== 'following') return { kind: outcome.kind, over: Promise.resolve() }
    const over = (async () => {
      for await (const part of outcome.parts) parts.push(shown(part))
    })()
    over.catch(() => {})
    await quiet()
    return { kind: outcome.kind, over }
  }
  const next = async (isNews: boolean) => {
    world.waits.at(-1)?.(isNews)
    await quiet()
  }
  const waited = () => world.asked.filter(asked => asked.startsWith('wait')).map(asked => Number(asked.slice(5)))
  return { world, hooks, gone, parts, run, next, start, waited }
}

test('a deployment that is not there is not found', async () => {
  expect((await stage(0, null).run()).kind).toBe('not-found')
})

describe('the log of one that is over', () => {
  test.each(['ready', 'failed'] as const)('all lines, then done; nothing is waited for: %s', async status => {
    const { world, parts, run } = stage(3, status)
    await (await run()).over
    expect(parts).toEqual(['1-3', status])
    expect(world.asked).toEqual(['read', 'wait 1000', 'read', 'lines 0'])
  })

  test.each<readonly [lines: number, after: number, parts: readonly string[]]>([
    [450, 0, ['1-200', '201-400', '401-450']],
    [450, 49, ['50-249', '250-449', '450-450']],
    [200, 0, ['1-200']],
    [3, 3, []],
    [3, 9, []],
    [0, 0, []],
  ])('of %i lines behind line %i it has the pages %j', async (lines, after, pages) => {
    const { parts, run } = stage(lines, 'ready')
    await (await run(after)).over
    expect(parts).toEqual([...pages, 'ready'])
  })
})

describe('the log of one that is under way', () => {
  test('lines are told as they come, and done behind the last one', async () => {
    const { world, parts, run, next } = stage(1)
    const { over } = await run()
    expect(parts).toEqual(['1-1'])
    world.lines = 2
    await next(true)
    world.lines = 3
    await next(false)
    expect(parts).toEqual(['1-1', '2-2', '3-3'])
    Object.assign(world, { lines: 5, status: 'failed' })
    await next(true)
    await over
    expect(parts).toEqual(['1-1', '2-2', '3-3', '4-5', 'failed'])
  })

  test('one that ends between the two readings is done only when its last lines were read', async () => {
    const { world, hooks, parts, run, next } = stage(1)
    hooks.onLines = () => Object.assign(world, { lines: 2, status: 'ready' })
    const { over } = await run()
    expect(parts).toEqual(['1-1'])
    await next(true)
    await over
    expect(parts).toEqual(['1-1', '2-2', 'ready'])
  })

  test('news that come while it reads are not slept through', async () => {
    const { world, hooks, parts, run } = stage(1)
    hooks.onLines = () => {
      hooks.onLines = () => {}
      world.lines = 2
      world.waits.at(-1)?.(true)
    }
    await run()
    expect(parts).toEqual(['1-1', '2-2'])
  })

  test('one that is removed ends the stream without done', async () => {
    const { world, parts, run, next } = stage(1)
    const { over } = await run()
    world.status = null
    await next(true)
    await over
    expect(parts).toEqual(['1-1'])
  })
})

test('who was silent for idleMs says so; a line begins that time anew, and news without a line do not', async () => {
  const { world, parts, run, next, waited } = stage()
  await run()
  for (const isNews of [false, true, false, false]) await next(isNews)
  expect(parts).toEqual(['idle'])
  expect(waited()).toEqual([1_000, 1_000, 1_000, 500, 1_000])
  await next(false)
  world.lines = 1
  for (const isNews of [false, false, false]) await next(isNews)
  expect(parts).toEqual(['idle', '1-1'])
  await next(false)
  expect(parts).toEqual(['idle', '1-1', 'idle'])
})

describe('it ends when the signal aborts', () => {
  test('while it waits', async () => {
    const { world, gone, parts, run, next } = stage()
    const { over } = await run()
    gone.abort()
    await next(false)
    await over
    expect(parts).toEqual([])
    expect(world.asked).toEqual(['read', 'wait 1000', 'read', 'lines 0'])
  })

  test('between two pages, with nothing more read', async () => {
    const { world, hooks, gone, parts, run } = stage(500)
    hooks.onLines = () => {
      if (world.asked.includes('lines 200')) gone.abort()
    }
    await (await run()).over
    expect(parts).toEqual(['1-200'])
    expect(world.asked.at(-1)).toBe('lines 200')
  })

  test('before anything was taken', async () => {
    const { world, gone, parts, run } = stage(500)
    gone.abort()
    await (await run()).over
    expect(parts).toEqual([])
    expect(world.asked).toEqual(['read'])
  })
})

test('nothing is read while nobody takes what was read', async () => {
  const { world, start, gone } = stage(500)
  const outcome = await start('id', 0, gone.signal)
  expect(world.asked).toEqual(['read'])
  if (outcome.kind !== 'following') throw new Error(outcome.kind)
  await outcome.parts[Symbol.asyncIterator]().next()
  await quiet()
  expect(world.asked.at(-1)).toBe('lines 0')
})

test('an error of the database is thrown to who takes the parts', async () => {
  const { hooks, run, next } = stage()
  const { over } = await run()
  hooks.onLines = () => {
    throw new Error('away')
  }
  await next(true)
  await expect(over).rejects.toThrow('away')
})

import { expect, test } from 'vitest'
import { createWriteCheck, type Durability, toDurability } from './health.ts'

const row = { synchronousCommit: 'on', standbyNames: '', fsync: 'on', hasStandby: false }

test.each<readonly [Partial<typeof row>, Durability]>([
  [{}, 'single'],
  [{ hasStandby: true }, 'asynchronous'],
  [{ standbyNames: 'ANY 1 (*)', hasStandby: true }, 'synchronous'],
  [{ standbyNames: 'ANY 1 (*)', hasStandby: true, synchronousCommit: 'local' }, 'asynchronous'],
  [{ synchronousCommit: 'off' }, 'volatile'],
  [{ fsync: 'off', standbyNames: 'ANY 1 (*)' }, 'volatile'],
])('with %j, a commit is %s', (settings, durability) => expect(toDurability({ ...row, ...settings })).toBe(durability))

test('a weak durability is reported when it begins, not again after an outage', async () => {
  const reports: string[] = []
  const results: (Durability | Error)[] = []
  const { check, durability } = createWriteCheck({
    probe: async () => {
      const result = results.shift()
      if (result === undefined || result instanceof Error) throw result ?? new Error('no result')
      return result
    },
    sessions: { expire: () => {} },
    onWeak: weak => reports.push(weak),
  })
  const run = async (...next: (Durability | Error)[]) => {
    for (const result of next) {
      results.push(result)
      await check().catch(() => {})
    }
    return reports.splice(0)
  }
  expect(await run('volatile', 'volatile')).toEqual(['volatile'])
  expect(await run(new Error('away'))).toEqual([])
  expect(durability()).toBeNull()
  expect(await run('volatile')).toEqual([])
  expect(await run('single', 'asynchronous')).toEqual(['asynchronous'])
})

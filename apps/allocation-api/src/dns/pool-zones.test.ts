import { expect, test } from 'vitest'
import type { ReadResult, ZoneSearch } from './domain/result.ts'
import { createNameFilter, type RecordSet } from './domain/rrset.ts'
import { PoolZones, withinPools } from './pool-zones.ts'
import type { DnsProvider } from './provider.ts'

const POOL = 'pool.example.test'
const a = (name: string): RecordSet => ({ name, type: 'A', ttl: 60, values: ['192.0.2.1'] })
const signal = new AbortController().signal
const wanted = { names: [`acme.${POOL}`], branches: [] }

/** A provider with these zones, which lists them, or shows only those that it is asked for. */
const createScene = (served: string[], { lists = true, configured = [] as [string, string][] } = {}) => {
  const zones = new PoolZones(new Map(configured))
  const asked: string[][] = []
  const records = ['example.test', `x${POOL}`, POOL, `acme.${POOL}`, `x.acme.${POOL}`].map(a)
  let result: ReadResult = { kind: 'read', records, unserved: records, isFullZone: true }
  const inner: DnsProvider = {
    hasZone: async name => served.includes(name),
    findZones: async (_, names): Promise<ZoneSearch> => {
      asked.push([...names])
      return lists
        ? { kind: 'found', zones: served, isAll: true }
        : { kind: 'found', zones: served.filter(zone => names.includes(zone)) }
    },
    read: async () => result,
    async *readZone() {
      yield result.kind === 'read' ? { ...result, kind: 'part' } : result
    },
    apply: async () => ({ kind: 'applied', rejected: [] }),
    checkZone: async () => ({ kind: 'writable' }),
    close: async () => {},
  }
  return {
    inner,
    provider: withinPools(inner, zones),
    zones,
    served,
    asked,
    setResult(next: ReadResult) {
      result = next
    },
  }
}

test.each<readonly [what: string, served: string[], configured: [string, string][], zone: string, hiding: string[]]>([
  ['the pool is a zone', [POOL, 'example.test'], [], POOL, []],
  ['the longest zone', ['test', 'example.test'], [], 'example.test', []],
  ['no zone', [], [], POOL, []],
  ['a configured one', ['test', 'example.test'], [[POOL, 'example.test']], 'example.test', []],
  ['a configured one, in which the pool is a zone', [POOL, 'test'], [[POOL, 'test']], 'test', [POOL]],
  ['one in between', ['test', 'example.test'], [[POOL, 'test']], 'test', ['example.test']],
  ['zones below and beside', [POOL, `acme.${POOL}`, `b.x${POOL}`, 'x.test'], [], POOL, [`acme.${POOL}`]],
])('the zone of a pool: %s', async (_, served, configured, zone, hiding) => {
  for (const lists of [true, false]) {
    const { provider, zones } = createScene(served, { lists, configured })
    const read = await provider.read(POOL, wanted, signal)
    expect(zones.zoneOf(POOL)).toBe(zone)
    const own = [POOL, `acme.${POOL}`, `x.acme.${POOL}`].map(a)
    expect(read).toEqual({
      ...{ kind: 'read', records: own, unserved: own, hiding: new Map(hiding.map(other => [other, 'zone'])) },
      // Names that are added later were not asked for.
      ...(lists ? { isFullZone: true } : {}),
    })
    const isHidden = hiding.some(other => POOL.endsWith(other))
    expect((await provider.checkZone(POOL, signal)).kind).toBe(isHidden ? 'unusable' : 'writable')
  }
})

test('a provider is asked for the names of the pool, up to its zone', async () => {
  const { provider, asked } = createScene(['test'], { lists: false })
  await provider.read(POOL, { names: [`*.acme.${POOL}`], branches: [`bravo.${POOL}`] }, signal)
  expect(asked).toEqual([[POOL, 'example.test', `acme.${POOL}`, `bravo.${POOL}`]])
})

test('a record that hides the pool is read by name, and does not count in a transfer that starts again', async () => {
  const { inner, zones } = createScene(['example.test'])
  const records = ['example.test', POOL].map(name => ({ ...a(name), type: 'NS' }))
  const provider = withinPools(
    {
      ...inner,
      read: async (_, names) => {
        const isWanted = createNameFilter(names)
        return { kind: 'read', records: records.filter(({ name }) => isWanted(name)) }
      },
      async *readZone() {
        yield* [{ kind: 'part', records }, { kind: 'restart' }, { kind: 'part', records: records.slice(0, 1) }] as const
      },
    },
    zones,
  )
  expect(await provider.read(POOL, wanted, signal)).toMatchObject({ hiding: new Map([[POOL, 'NS']]) })
  let last: unknown
  for await (const part of provider.readZone(POOL, signal)) last = part
  expect(last).toEqual({ kind: 'part', records: [], hiding: new Map() })
})

test('the zone of a pool is found again when the provider no longer has it', async () => {
  const { provider, zones, served, setResult } = createScene([POOL, 'test'])
  await provider.read(POOL, wanted, signal)
  served.shift()
  setResult({ kind: 'unavailable', reason: 'There is no such zone.', scope: 'zone' })
  await provider.read(POOL, wanted, signal)
  setResult({ kind: 'read', records: [] })
  await provider.read(POOL, wanted, signal)
  expect(zones.zoneOf(POOL)).toBe('test')
})

test('a drift check of many names asks for some of them, and the next one continues', async () => {
  const { provider, asked, setResult } = createScene([POOL], { lists: false })
  const names = Array.from({ length: 7_000 }, (_, i) => `n${i}.${POOL}`)
  setResult({ kind: 'read', records: names.map(a) })
  for (let i = 0; i < 3; i += 1) for await (const _ of provider.readZone(POOL, signal));
  expect(asked.map(({ length }) => length)).toEqual([5_000, 2_000, 5_000])
  expect(new Set(asked.slice(0, 2).flat()).size).toBe(7_000)
})

test('no change outside of the pool reaches the provider', async () => {
  const { provider } = createScene(['example.test'])
  const outside = { kind: 'delete', name: `x${POOL}`, type: 'A' } as const
  const reason = `the name is not in the pool ${POOL}`
  const result = { kind: 'applied', rejected: [{ name: `x${POOL}`, reason }] }
  expect(await provider.apply(POOL, [outside], signal)).toEqual(result)
})

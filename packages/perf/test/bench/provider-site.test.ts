import { mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { isSkippedFor } from '@pool/test-kit/optional-deps.ts'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { providers, startProviderSite } from '../../src/bench/environment/provider-site.ts'

/** Where the servers make their temporary folders. */
let folder: string
const before = process.env.TMPDIR
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'bench-site-'))
  process.env.TMPDIR = folder
})
afterAll(async () => {
  if (before === undefined) delete process.env.TMPDIR
  else process.env.TMPDIR = before
  await rm(folder, { recursive: true })
})

const isWanted = ({ lacks }: { readonly lacks: string | null }) => !isSkippedFor(lacks ?? undefined)
for (const provider of providers) if (!isWanted(provider)) it.skip(provider.lacks ?? '')

describe.each(providers.filter(isWanted))('the site of $name', ({ name, delayMs }) => {
  it('has an empty zone that its provider can read and write, and tells the requests it was sent', async () => {
    await using cleanup = new AsyncDisposableStack()
    const { zone, env, requests, connect } = await startProviderSite(name, cleanup)
    expect(env).toMatchObject({ DNSPROVIDER_KIND: name, DNSPROVIDER_MANAGED_DOMAINS: zone })
    const provider = connect()
    cleanup.defer(() => provider.close())
    const set = { name: `one.${zone}`, type: 'A', ttl: 300, values: ['203.0.113.10'] }
    const signal = AbortSignal.timeout(10_000)
    const names = [set.name]
    /** What there is at the name: a provider may show more of the zone than it was asked for. */
    const valuesThere = async () => {
      const result = await provider.read(zone, names, signal)
      return result.kind === 'read' && result.records.filter(one => one.name === set.name).map(one => one.values)
    }
    expect(await valuesThere()).toEqual([])
    const [sent, started] = [requests?.() ?? 0, performance.now()]
    expect(await provider.apply(zone, [{ kind: 'upsert', set }], signal)).toMatchObject({
      kind: 'applied',
      refused: [],
    })
    const requested = (requests?.() ?? 0) - sent
    expect(requested > 0).toBe(requests !== null)
    // Node's timers round: a pause may be a millisecond short.
    expect(performance.now() - started).toBeGreaterThan(requested * (delayMs - 1))
    expect(await valuesThere()).toEqual([set.values])
  })

  it('is gone when the cleanup is over, though it was only starting', async () => {
    const cleanup = new AsyncDisposableStack()
    const starting = startProviderSite(name, cleanup)
    await cleanup.disposeAsync()
    const { connect, zone } = await starting
    const provider = connect()
    expect(await provider.read(zone, 'all', AbortSignal.timeout(10_000))).toMatchObject({ kind: 'unavailable' })
    await provider.close()
    expect(await readdir(folder)).toEqual([])
  })
})

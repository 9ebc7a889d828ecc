import { LeaseClient, LeaseElector } from '@pool/client/leases'
import { startWitness, type TestWitness } from '@pool/testing'
import { afterAll, beforeAll, expect, test } from 'vitest'

let witness: TestWitness
beforeAll(async () => {
  witness = await startWitness()
})
afterAll(() => witness?.stop())

test('a standby leads when the lease of a crashed leader has expired', async () => {
  const leases = new LeaseClient({ baseUrl: witness.url, token: witness.token })
  // A leader that has crashed: it neither renews nor releases.
  await leases.acquire('region-pair/primary', { holder: 'crashed', generation: 0, ttlMs: 30_000 })
  const stop = new AbortController()
  const leaders: string[] = []
  const elector = new LeaseElector({
    leases,
    slot: 'region-pair/primary',
    identity: 'standby',
    callbacks: {
      onStartedLeading: () => {},
      onStoppedLeading: () => {},
      onNewLeader: leader => leaders.push(leader),
    },
  })
  const running = elector.run(stop.signal)
  await expect.poll(() => leaders).toEqual(['crashed'])
  await witness.clock.advance(30_000)
  await expect.poll(() => leaders, { timeout: 20_000 }).toEqual(['crashed', 'standby'])
  stop.abort()
  await running
  expect((await leases.read('region-pair/primary')).isVacant).toBe(true)
})

import { until } from '@pool/test-kit/poll.ts'
import { startWitness } from '@pool/testing'
import { expect, test } from 'vitest'
import { LeaseElector } from '../../src/leases/elector.ts'
import { createIdentity } from '../../src/leases/identity.ts'
import { LeaseClient } from '../../src/leases/lease-client.ts'

const DURATIONS = { leaseDuration: 3_000, renewDeadline: 2_000, retryPeriod: 500 } as const
const SLOT = 'region-pair/primary'

const toAddress = (identity: string): string => `https://${identity}.example:8443`

interface Seen {
  readonly holder: string
  readonly value: string
}

test.each(['workerd', 'postgres'] as const)(
  '%s: after a failover each standby has the address of the new leader, and none saw the former one with it',
  async on => {
    await using witness = await startWitness({ on })
    const connection = { baseUrl: witness.url, token: witness.token }
    const stop = new AbortController()
    /** What the candidates and an observer saw. */
    const seen: Seen[] = []
    const candidates = ['a', 'b', 'c'].map(name => {
      const identity = createIdentity(name)
      const partition = { isActive: false }
      const cut: typeof fetch = (input, init) =>
        partition.isActive ? Promise.reject(new TypeError('fetch failed')) : fetch(input, init)
      const elector: LeaseElector = new LeaseElector({
        ...DURATIONS,
        leases: new LeaseClient({ ...connection, fetch: cut }),
        slot: SLOT,
        identity,
        value: toAddress(identity),
        callbacks: {
          onStartedLeading: () => {},
          onStoppedLeading: () => {},
          onNewLeader: (holder, value) => seen.push({ holder, value }, { holder, value: elector.leaderValue }),
        },
      })
      return { identity, partition, elector, finished: elector.run(stop.signal) }
    })
    const observe = async () => {
      const leases = new LeaseClient(connection)
      let generation = 0
      while (!stop.signal.aborted) {
        const lease = (await leases.waitForChange(SLOT, generation, 1))?.lease
        if (lease?.holder) seen.push({ holder: lease.holder, value: lease.value ?? '' })
        generation = lease?.generation ?? generation
      }
    }
    const observed = observe()

    for (let failovers = 0; failovers < 2; failovers += 1) {
      const alive = () => candidates.filter(({ partition }) => !partition.isActive)
      const leader = await until('the others see a leader that can be reached', () =>
        alive().find(({ identity }) =>
          alive().every(({ elector }) => elector.leader === identity && elector.leaderValue === toAddress(identity)),
        ),
      )
      if (failovers === 0) leader.partition.isActive = true
    }
    stop.abort()
    await Promise.all([observed, ...candidates.map(({ finished }) => finished)])
    expect(new Set(seen.map(({ holder }) => holder)).size).toBeGreaterThan(1)
    expect(seen.filter(({ holder, value }) => value !== toAddress(holder))).toEqual([])
  },
)

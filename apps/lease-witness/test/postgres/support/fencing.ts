import { until } from '@pool/test-kit/poll.ts'
import { afterEach } from 'vitest'
import type { WriteOutcome } from '../../../src/lease-service.ts'
import { startTestReplica, type TestReplica, TIMEOUT_MS } from './database.ts'

export interface Grant {
  readonly slot: string
  readonly holder: string
  readonly generation: number
}

/** A resource that rejects a fencing token older than the newest it has seen (Kleppmann, 2016). */
export class FencedResource {
  #newest = 0
  accepts(token: number): boolean {
    if (token < this.#newest) return false
    this.#newest = token
    return true
  }
}

type GrantOutcome = Extract<WriteOutcome, { readonly kind: 'granted' | 'renewed' | 'released' }>

const isGrant = (outcome: WriteOutcome): outcome is GrantOutcome =>
  outcome.kind === 'granted' || outcome.kind === 'renewed'

/** Clients of leases, which record every generation that they were granted. */
export class RecordingClient {
  readonly grants: Grant[] = []
  replica: TestReplica

  constructor(replica: TestReplica) {
    this.replica = replica
  }

  async write(
    slot: string,
    kind: 'acquire' | 'renew',
    holder: string,
    generation: number,
    ttlMs = 60_000,
  ): Promise<WriteOutcome> {
    const outcome = await this.replica.leases.write({ slot, encoded: slot }, { kind, holder, ttlMs, generation }, '')
    if (isGrant(outcome)) this.grants.push({ slot, holder, generation: outcome.lease.generation })
    return outcome
  }

  async acquire(slot: string, holder: string, generation: number, ttlMs?: number): Promise<number> {
    const outcome = await this.write(slot, 'acquire', holder, generation, ttlMs)
    if (!isGrant(outcome)) throw new Error(`not granted: ${JSON.stringify(outcome)}`)
    return outcome.lease.generation
  }

  /** The generation of a slot; 0 if it was never written. */
  async read(slot: string): Promise<number> {
    const outcome = await this.replica.leases.read({ slot, encoded: slot }, [])
    if (outcome.kind === 'absent') return 0
    if (outcome.kind !== 'lease') throw new Error(`not read: ${JSON.stringify(outcome)}`)
    return outcome.lease.generation
  }

  /** Generations that a slot was granted more than once, or not in ascending order. */
  findRepeats(): Grant[] {
    const newest = new Map<string, number>()
    return this.grants.filter(({ slot, generation }) => {
      const isRepeated = generation <= (newest.get(slot) ?? 0)
      newest.set(slot, Math.max(generation, newest.get(slot) ?? 0))
      return isRepeated
    })
  }
}

export const untilServing = (client: RecordingClient) =>
  until('the database serves again', async () => {
    const written = await client.write('probe', 'renew', 'a', 0)
    const read = await client.replica.leases.read({ slot: 'probe', encoded: 'probe' }, [])
    return written.kind === 'rejected' && read.kind === 'absent'
  })

/** Starts clients, each with a replica of its own. After a test, what is in `cleanups` is called, the last one first. */
export const useClients = () => {
  const cleanups: (() => unknown)[] = []
  afterEach(async () => {
    for (const cleanUp of cleanups.splice(0).reverse()) await cleanUp()
  })
  return {
    cleanups,
    async startClient(url: string, timeoutMs = TIMEOUT_MS): Promise<RecordingClient> {
      const replica = await startTestReplica(url, { listens: false, timeoutMs })
      cleanups.push(() => replica.close())
      return new RecordingClient(replica)
    },
  }
}

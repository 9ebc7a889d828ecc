import { createServer } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { createPrng, type Prng } from '@pool/test-kit/prng.ts'
import { LeaseElector } from '../../../src/leases/elector.ts'
import { createIdentity } from '../../../src/leases/identity.ts'
import { LeaseClient } from '../../../src/leases/lease-client.ts'

/**
 * A process with some electors for each of many slots, all of one name. They start, stop and hand over at random; requests and
 * responses are late or lost. A leader has a socket with the name of its slot, which the kernel gives to one holder at a time,
 * until it closes it or its process ends. Writes `leads <slot>` or `overlap <slot>`.
 */

const { URL: baseUrl = '', TOKEN: token = '', SOCKETS = '', NAME, SEED = '', SLOTS = '', PER_SLOT = '' } = process.env
const DURATIONS = { leaseDuration: 6_000, renewDeadline: 4_000, retryPeriod: 1_000 } as const
const MAX_LATE_MS = 3_000

const report = (event: string, slot: string) => process.stdout.write(`${event} ${slot}\n`)

const disturb =
  (random: Prng): typeof fetch =>
  async (input, init) => {
    const isWrite = init?.method === 'PUT' || init?.method === 'DELETE'
    if (random.chance(0.1)) await sleep(random.below(MAX_LATE_MS))
    // A write in flight arrives, although its sender has given it up.
    const response = await fetch(input, isWrite ? { ...init, signal: null } : init)
    if (random.chance(0.1)) await sleep(random.below(MAX_LATE_MS))
    if (random.chance(0.15)) throw new TypeError('the response is lost')
    return response
  }

const runCandidates = async (slot: string, identity: string, random: Prng): Promise<void> => {
  const leases = new LeaseClient({ baseUrl, token, fetch: disturb(random) })
  while (true) {
    await sleep(random.below(3_000))
    let socket = createServer()
    const onStartedLeading = () => {
      socket = createServer().on('error', () => report('overlap', slot))
      socket.listen(`\0${SOCKETS}/${slot}`, () => report('leads', slot))
    }
    const callbacks = { onStartedLeading, onStoppedLeading: () => void socket.close() }
    const releaseOnCancel = random.chance(0.7)
    const elector = new LeaseElector({ ...DURATIONS, leases, slot, identity, callbacks, releaseOnCancel })
    setTimeout(() => elector.handOver(), random.below(10_000))
    await elector.run(AbortSignal.timeout(random.below(10_000)))
  }
}

for (let index = 0; index < Number(SLOTS); index += 1) {
  const identity = NAME || (index % 2 === 0 ? createIdentity('same') : 'same')
  for (let elector = 0; elector < Number(PER_SLOT); elector += 1)
    void runCandidates(`${SOCKETS}/${index}`, identity, createPrng(`${SEED}/${index}/${elector}`))
}
